import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { z } from "zod";
import type { DemoAgentConfig } from "./config.ts";
import { HttpConnector } from "./http-connector.ts";
import { Models } from "./models.ts";
import { TaskFailure } from "./task-failure.ts";

const MAX_BODY_BYTES = 64 * 1024;

const taskSchema = z.strictObject({
  task: z.string().trim().min(1).max(16_384),
  model: z.string().min(1).max(256).optional(),
});

/** `POST /tasks {task, model?}` → `{answer, model, delivered}`, and `GET /healthz`. */
export function createAgent(config: DemoAgentConfig): Server {
  const models = new Models(config);
  const connector = new HttpConnector(config);

  async function work(request: IncomingMessage, signal: AbortSignal): Promise<object> {
    const { task, model } = parseTask(await readBody(request));
    const answered = await models.ask(task, model ?? null, signal);
    const delivered = await connector.deliver({ agentId: config.agentId, task, answer: answered.answer }, signal);
    return { ...answered, delivered };
  }

  return createServer((request, response) => {
    const path = request.url?.split("?", 1)[0];
    if (path === "/healthz") return send(response, 200, { status: "ok" });
    if (path !== "/tasks")
      return fail(response, new TaskFailure(404, "not_found", "Not found. Available paths: /tasks and /healthz."));
    if (request.method !== "POST") {
      response.setHeader("allow", "POST");
      return fail(response, new TaskFailure(405, "method_not_allowed", "Use POST."));
    }
    // Stop the model if the client disconnects.
    const gone = new AbortController();
    response.once("close", () => gone.abort());
    work(request, gone.signal).then(
      (done) => send(response, 200, done),
      (error: unknown) => fail(response, error),
    );
  });
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES)
      throw new TaskFailure(413, "task_too_large", `A task can have at most ${MAX_BODY_BYTES} bytes.`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function parseTask(body: string): z.infer<typeof taskSchema> {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    throw new TaskFailure(400, "invalid_task", "The body is not JSON.");
  }
  const parsed = taskSchema.safeParse(value);
  if (!parsed.success) throw new TaskFailure(400, "invalid_task", z.prettifyError(parsed.error));
  return parsed.data;
}

function fail(response: ServerResponse, error: unknown): void {
  const failure = error instanceof TaskFailure ? error : new TaskFailure(500, "failed", "The agent failed.");
  send(response, failure.status, { error: { code: failure.code, message: failure.message } });
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}
