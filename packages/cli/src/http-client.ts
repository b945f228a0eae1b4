import { z } from "zod";
import { CliError } from "./cli-error.ts";

/** Calls to one of the two hosts. Every answer passes a schema; every failure says what to do. */

const ANSWER_MS = 30_000;

const errorSchema = z.object({
  error: z.object({ message: z.string(), code: z.string(), requestId: z.string().optional() }),
});

export interface Host {
  /** For people: "platform host" or "inference host". */
  readonly name: string;
  readonly url: string;
  readonly credential: string;
  /** The variable that holds `url`, for advice when nothing answers there. */
  readonly urlSetting: string;
}

export interface Call {
  readonly method?: "GET" | "POST" | undefined;
  readonly path: string;
  readonly body?: unknown;
  readonly signal?: AbortSignal | undefined;
}

/** @returns the parsed answer. @throws CliError for every refusal, silence or answer of another form. */
export async function callJson<T>(host: Host, call: Call, schema: z.ZodType<T>): Promise<T> {
  const response = await send(host, { ...call, signal: call.signal ?? AbortSignal.timeout(ANSWER_MS) });
  const parsed = schema.safeParse(await readJson(host, response));
  if (parsed.success) return parsed.data;
  const where = parsed.error.issues[0]?.path.join(".") ?? "";
  throw new CliError(`The ${host.name} at ${host.url} gave an answer of an unknown form (${where}). Is it Fairlead?`);
}

/** @returns an answer with a good status. @throws CliError otherwise; the caller's own abort passes through. */
export async function send(host: Host, { method, path, body, signal }: Call): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(host.url + path, {
      method: method ?? "GET",
      headers: {
        authorization: `Bearer ${host.credential}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal ? { signal } : {}),
      redirect: "error",
    });
  } catch (cause) {
    if (cause instanceof Error && cause.name === "AbortError") throw cause;
    throw new CliError(unreachable(host, cause), { cause });
  }
  if (!response.ok) throw new CliError(await refusal(host, response));
  return response;
}

function unreachable(host: Host, cause: unknown): string {
  const advice = `Is the server running (\`fairlead server\`), and is ${host.urlSetting} right?`;
  if (cause instanceof Error && cause.name === "TimeoutError") {
    return `The ${host.name} at ${host.url} stayed silent. ${advice}`;
  }
  return `No ${host.name} answers at ${host.url}. ${advice}`;
}

async function readJson(host: Host, response: Response): Promise<unknown> {
  try {
    return await response.json();
  } catch (cause) {
    throw new CliError(`The ${host.name} at ${host.url} did not answer with JSON. Is it Fairlead?`, { cause });
  }
}

async function refusal(host: Host, response: Response): Promise<string> {
  const parsed = errorSchema.safeParse(await response.json().catch(() => null));
  if (!parsed.success) return `The ${host.name} at ${host.url} answered ${response.status} ${response.statusText}.`;
  const { message, code, requestId } = parsed.data.error;
  return `${message} (${[code, requestId].filter(Boolean).join(", ")})${advice(code)}`;
}

function advice(code: string): string {
  if (code === "expired_credential")
    return "\nGet a new token with `fairlead admin token`, or run ./scripts/quickstart.";
  return "";
}
