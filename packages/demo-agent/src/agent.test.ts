import { once } from "node:events";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createAgent } from "./agent.ts";
import type { DemoAgentConfig } from "./config.ts";

interface Seen {
  readonly method: string;
  readonly path: string;
  readonly authorization: string | undefined;
  readonly body: unknown;
}

/** Responds with the entry in `answers` for the path and records requests. */
class Stub {
  readonly seen: Seen[] = [];
  readonly answers = new Map<string, { status: number; body: unknown }>();
  readonly server: Server = createServer((request, response) => {
    const path = request.url ?? "";
    void bodyOf(request).then((body) => {
      this.seen.push({ method: request.method ?? "", path, authorization: request.headers.authorization, body });
      const answer = this.answers.get(path);
      if (answer) response.writeHead(answer.status).end(JSON.stringify(answer.body));
    });
  });

  get url(): string {
    return urlOf(this.server);
  }
}

const completion = (content: string | null) => ({ status: 200, body: { choices: [{ message: { content } }] } });

let folder: string;
let stub: Stub;
let agent: Server;
let variables: Record<string, string>;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "fairlead-demo-agent-"));
  variables = {};
  stub = new Stub();
  await listen(stub.server);
  writeFileSync(join(folder, "fairlead-token"), "first-token\n");
  const config: DemoAgentConfig = {
    baseUrl: `${stub.url}/v1`,
    tokenFile: join(folder, "fairlead-token"),
    agentId: "agt_1",
    port: 0,
    model: null,
    variable: (name) => variables[name] ?? null,
    secretsFolder: folder,
  };
  agent = createAgent(config);
  await listen(agent);
  stub.answers.set("/v1/models", { status: 200, body: { data: [{ id: "demo/tiny" }] } });
  stub.answers.set("/v1/chat/completions", completion("4"));
});

afterEach(() => {
  for (const server of [agent, stub.server]) {
    server.closeAllConnections();
    server.close();
  }
  rmSync(folder, { recursive: true });
});

describe("the demo agent", () => {
  it("answers a task with the model that the task names", async () => {
    const { status, body } = await give({ task: "2+2?", model: "demo/other" });
    expect(status).toBe(200);
    expect(body).toEqual({ answer: "4", model: "demo/other", delivered: false });
    expect(stub.seen).toEqual([
      {
        method: "POST",
        path: "/v1/chat/completions",
        authorization: "Bearer first-token",
        body: { model: "demo/other", messages: [{ role: "user", content: "2+2?" }] },
      },
    ]);
  });

  it("uses the project's first model for a task that names none", async () => {
    expect((await give({ task: "2+2?" })).body).toMatchObject({ model: "demo/tiny" });
  });

  it("reads its token for each call, since the daemon renews it in place", async () => {
    await give({ task: "2+2?", model: "m" });
    writeFileSync(join(folder, "next"), "second-token");
    renameSync(join(folder, "next"), join(folder, "fairlead-token"));
    await give({ task: "2+2?", model: "m" });
    expect(stub.seen.map((call) => call.authorization)).toEqual(["Bearer first-token", "Bearer second-token"]);
  });

  it.each(["file", "env"])("passes the answer to its http connector, whose secrets are provided by %s", async (as) => {
    stub.answers.set("/hook", { status: 204, body: null });
    const secrets = { HTTP_CONNECTOR_URL: `${stub.url}/hook`, HTTP_CONNECTOR_TOKEN: "hook-token" };
    if (as === "env") variables = secrets;
    else for (const [name, value] of Object.entries(secrets)) writeFileSync(join(folder, name), value);
    expect((await give({ task: "2+2?", model: "m" })).body).toMatchObject({ delivered: true });
    expect(stub.seen.at(-1)).toEqual({
      method: "POST",
      path: "/hook",
      authorization: "Bearer hook-token",
      body: { agentId: "agt_1", task: "2+2?", answer: "4" },
    });
  });

  it("reports that its connector rejected the answer", async () => {
    stub.answers.set("/hook", { status: 403, body: {} });
    variables = { HTTP_CONNECTOR_URL: `${stub.url}/hook`, HTTP_CONNECTOR_TOKEN: "wrong" };
    const { status, body } = await give({ task: "2+2?", model: "m" });
    expect(status).toBe(502);
    expect(body).toMatchObject({ error: { code: "connector_failed", message: expect.stringContaining("403") } });
  });

  it("reports why the inference host rejected the call, and delivers nothing", async () => {
    stub.answers.set("/v1/chat/completions", { status: 402, body: { error: { message: "The budget is spent." } } });
    variables = { HTTP_CONNECTOR_URL: `${stub.url}/hook`, HTTP_CONNECTOR_TOKEN: "t" };
    const { status, body } = await give({ task: "2+2?", model: "m" });
    expect(status).toBe(502);
    expect(body).toEqual({
      error: { code: "model_refused", message: "The inference host returned 402: The budget is spent." },
    });
    expect(stub.seen.map((call) => call.path)).not.toContain("/hook");
  });

  it.each([
    ["a response without text", { status: 200, body: { choices: [{ message: { content: null } }] } }],
    ["a response of another shape", { status: 200, body: "<html>" }],
  ])("treats %s as a failure of the model", async (_case, answer) => {
    stub.answers.set("/v1/chat/completions", answer);
    const { status, body } = await give({ task: "2+2?", model: "m" });
    expect(status).toBe(502);
    expect(body).toMatchObject({ error: { code: "model_failed" } });
  });

  it("fails a task when its token is missing", async () => {
    rmSync(join(folder, "fairlead-token"));
    const { status, body } = await give({ task: "2+2?", model: "m" });
    expect(status).toBe(502);
    expect(body).toMatchObject({ error: { code: "no_token" } });
    expect(stub.seen).toEqual([]);
  });

  it("cancels the model call when the client disconnects", async () => {
    stub.answers.delete("/v1/chat/completions");
    const left = vi.fn();
    stub.server.on("request", (request) => request.once("close", left));
    const leaving = new AbortController();
    const given = give({ task: "2+2?", model: "m" }, leaving.signal);
    await vi.waitUntil(() => stub.seen.length === 1);
    leaving.abort();
    await expect(given).rejects.toThrow();
    await vi.waitUntil(() => stub.server.listening && left.mock.calls.length === 1);
  });

  it.each([
    { what: "invalid JSON", text: "{", status: 400, code: "invalid_task" },
    { what: "a missing task", text: "{}", status: 400, code: "invalid_task" },
    { what: "an empty task", text: '{"task":"  "}', status: 400, code: "invalid_task" },
    { what: "an unknown field", text: '{"task":"t","modle":"m"}', status: 400, code: "invalid_task" },
    { what: "a task that is too large", text: `{"task":"${"x".repeat(70_000)}"}`, status: 413, code: "task_too_large" },
  ])("rejects $what", async ({ text, status, code }) => {
    const answer = await post(text);
    expect(answer.status).toBe(status);
    expect(answer.body).toMatchObject({ error: { code } });
    expect(stub.seen).toEqual([]);
  });

  it("passes hostile text on unchanged", async () => {
    const task = '"; DROP TABLE agent; -- <script>\u202e\u0000 𝕏';
    await give({ task, model: "m" });
    expect(stub.seen[0]?.body).toMatchObject({ messages: [{ role: "user", content: task }] });
  });

  it("answers GET requests only on its health endpoint", async () => {
    const get = async (path: string) => (await fetch(`${urlOf(agent)}${path}`)).status;
    expect([await get("/healthz"), await get("/tasks"), await get("/")]).toEqual([200, 405, 404]);
  });
});

function give(task: object, signal?: AbortSignal): Promise<{ status: number; body: unknown }> {
  return post(JSON.stringify(task), signal);
}

async function post(body: string, signal?: AbortSignal): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`${urlOf(agent)}/tasks`, { method: "POST", body, ...(signal && { signal }) });
  return { status: response.status, body: await response.json() };
}

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  let text = "";
  for await (const chunk of request) text += String(chunk);
  return text === "" ? null : JSON.parse(text);
}

async function listen(server: Server): Promise<void> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
}

function urlOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
