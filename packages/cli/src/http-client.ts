import { setTimeout as wait } from "node:timers/promises";
import { z } from "zod";
import { CliError } from "./cli-error.ts";
import { visible } from "./visible.ts";

/** Calls to one of the two hosts. Every answer passes a schema; every failure says what to do. */

const ANSWER_MS = 30_000;
/** Waits before a call whose answer was lost is sent again. */
const AGAIN_MS = [200, 1000];

const errorSchema = z.object({
  // An upstream's own refusal may have no code.
  error: z.object({
    message: z.string(),
    code: z.string().nullable(),
    param: z.string().nullish(),
    requestId: z.string().optional(),
    missingSecrets: z.array(z.object({ name: z.string() })).default([]),
  }),
});

export interface Host {
  /** For people: "platform host" or "inference host". */
  readonly name: string;
  readonly url: string;
  /** @param spent the credential that the host refused just now. @returns the one to send. @throws CliError when there is none */
  credential(spent?: string): Promise<string>;
  /** A refused credential can be renewed. */
  readonly renewable: boolean;
  /** The variable that holds `url`, for advice when nothing answers there. */
  readonly urlSetting: string;
}

export interface Call {
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE" | undefined;
  readonly path: string;
  readonly body?: unknown;
  /** Sent along, so that the host makes one thing however often the call arrives. */
  readonly idempotencyKey?: string | undefined;
  /** Beyond those of every call. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  /** Told of every answer, a refusal too. */
  readonly onHead?: (headers: Headers) => void;
}

interface RefusalFacts {
  readonly param?: string | null;
  readonly missingSecrets?: readonly string[];
}

/** A host's refusal, with its code, and the field that it is about. */
export class Refused extends CliError {
  override readonly name = "Refused";
  readonly code: string | null;
  readonly param: string | null;
  /** The names of those that are to be set; of `missing_secrets`. */
  readonly missingSecrets: readonly string[];

  constructor(message: string, code: string | null, { param = null, missingSecrets = [] }: RefusalFacts = {}) {
    super(message);
    this.code = code;
    this.param = param;
    this.missingSecrets = missingSecrets;
  }
}

/** Nobody answers. */
export class Unanswered extends CliError {
  override readonly name: string = "Unanswered";
}

/** @returns the parsed answer. @throws CliError for every refusal, silence or answer of another form. */
export async function callJson<T>(host: Host, call: Call, schema: z.ZodType<T>): Promise<T> {
  const response = await send(host, call);
  const parsed = schema.safeParse(await readJson(host, response));
  if (parsed.success) return parsed.data;
  const where = parsed.error.issues[0]?.path.join(".") ?? "";
  throw new CliError(`The ${host.name} at ${host.url} gave an answer of an unknown form (${where}). Is it Fairlead?`);
}

/** @returns an answer with a good status. @throws CliError otherwise; the caller's own abort passes through. */
export async function send(host: Host, call: Call): Promise<Response> {
  const credential = await host.credential();
  let response = await sendAgain(host, call, credential);
  if (response.status === 401 && host.renewable) {
    await response.body?.cancel();
    response = await sendAgain(host, call, await host.credential(credential));
  }
  call.onHead?.(response.headers);
  if (!response.ok) throw await refusal(host, response);
  return response;
}

/** Repeats a call whose answer was lost, where that cannot make anything twice. */
async function sendAgain(host: Host, call: Call, credential: string): Promise<Response> {
  const repeatable = (call.method ?? "GET") === "GET" || call.idempotencyKey !== undefined;
  for (const ms of repeatable ? AGAIN_MS : []) {
    try {
      return await sendOnce(host, call, credential);
    } catch (error) {
      if (!(error instanceof LostAnswer)) throw error;
      await wait(ms);
    }
  }
  return sendOnce(host, call, credential);
}

/** The call may have arrived; its answer did not. */
class LostAnswer extends Unanswered {
  override readonly name = "LostAnswer";
}

async function sendOnce(host: Host, call: Call, credential: string): Promise<Response> {
  const { method = "GET", path, body, idempotencyKey, headers, signal } = call;
  try {
    return await fetch(host.url + path, {
      method,
      headers: {
        ...headers,
        authorization: `Bearer ${credential}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...(idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: signal ?? AbortSignal.timeout(ANSWER_MS),
      redirect: "error",
    });
  } catch (cause) {
    if (cause instanceof Error && cause.name === "AbortError") throw cause;
    throw failure(host, cause);
  }
}

function failure(host: Host, cause: unknown): Unanswered {
  const advice = `Is the server running (\`fairlead server\`), and is ${host.urlSetting} right?`;
  if (cause instanceof Error && cause.name === "TimeoutError") {
    return new Unanswered(`The ${host.name} at ${host.url} stayed silent. ${advice}`, { cause });
  }
  const message = `No ${host.name} answers at ${host.url}. ${advice}`;
  return codeBelow(cause) === "ECONNRESET" || codeBelow(cause) === "UND_ERR_SOCKET"
    ? new LostAnswer(message, { cause })
    : new Unanswered(message, { cause });
}

/** fetch says only that it failed; why is in the error's cause. */
function codeBelow(error: unknown): unknown {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && "code" in cause ? cause.code : undefined;
}

async function readJson(host: Host, response: Response): Promise<unknown> {
  try {
    return await response.json();
  } catch (cause) {
    throw new CliError(`The ${host.name} at ${host.url} did not answer with JSON. Is it Fairlead?`, { cause });
  }
}

async function refusal(host: Host, response: Response): Promise<Refused> {
  const parsed = errorSchema.safeParse(await response.json().catch(() => null));
  if (!parsed.success) {
    return new Refused(`The ${host.name} at ${host.url} answered ${response.status} ${response.statusText}.`, null);
  }
  const { message, code, param = null, requestId, missingSecrets } = parsed.data.error;
  const facts = [code, requestId].filter(Boolean).join(", ");
  const said = facts === "" ? message : `${message} (${facts})`;
  const missing = missingSecrets.map(({ name }) => name);
  return new Refused(visible(said) + advice(code, host), code, { param, missingSecrets: missing });
}

function advice(code: string | null, { renewable }: Host): string {
  if (renewable && code === "invalid_credential") return "\nRun `fairlead login`.";
  if (code === "expired_credential") {
    return "\nRun `fairlead login`; for a token in FAIRLEAD_TOKEN: `fairlead admin token`, or ./scripts/quickstart.";
  }
  return "";
}
