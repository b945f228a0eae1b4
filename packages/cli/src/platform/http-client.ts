import { setTimeout as wait } from "node:timers/promises";
import { z } from "zod";
import { CliError } from "../cli-error.ts";
import { visible } from "../terminal/visible.ts";
import { proxyFailure } from "./outgoing.ts";

/** HTTP client for the two hosts. Responses are validated; errors say what to do. */

const ANSWER_MS = 30_000;
/** Delays before the retries of a call whose response was lost. */
const AGAIN_MS = [200, 1000];

const errorSchema = z.object({
  // Errors passed through from an upstream may have no code.
  error: z.object({
    message: z.string(),
    code: z.string().nullable(),
    param: z.string().nullish(),
    requestId: z.string().optional(),
    missingSecrets: z.array(z.object({ name: z.string() })).default([]),
  }),
});

export interface Host {
  /** For messages: "platform host" or "inference host". */
  readonly name: string;
  readonly url: string;
  /** @param spent the credential that was just rejected. @returns the credential to send. @throws CliError if there is none */
  credential(spent?: string): Promise<string>;
  /** Source of the credential; null for a login, which can be renewed. */
  readonly credentialSetting: CredentialSetting | null;
  /** The variable that sets `url`, for error messages. */
  readonly urlSetting: string;
}

export interface CredentialSetting {
  readonly name: "FAIRLEAD_TOKEN" | "FAIRLEAD_API_KEY";
  /** `the environment`, or the path of an env file. */
  readonly source: string;
}

export interface Call {
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE" | undefined;
  readonly path: string;
  readonly body?: unknown;
  /** Makes the call safe to retry. */
  readonly idempotencyKey?: string | undefined;
  /** Additional headers. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  /** Called for every response, including errors. */
  readonly onHead?: (headers: Headers) => void;
}

interface RefusalFacts {
  readonly param?: string | null;
  readonly missingSecrets?: readonly string[];
}

/** An error response: its code and the field it refers to. */
export class Refused extends CliError {
  override readonly name = "Refused";
  readonly code: string | null;
  readonly param: string | null;
  /** Names of the secrets to set, for the code `missing_secrets`. */
  readonly missingSecrets: readonly string[];

  constructor(message: string, code: string | null, { param = null, missingSecrets = [] }: RefusalFacts = {}) {
    super(message);
    this.code = code;
    this.param = param;
    this.missingSecrets = missingSecrets;
  }
}

/** The host does not respond. */
export class Unanswered extends CliError {
  override readonly name: string = "Unanswered";
}

/** @returns the parsed response. @throws CliError for an error response, no response or an invalid one. */
export async function callJson<T>(host: Host, call: Call, schema: z.ZodType<T>): Promise<T> {
  const response = await send(host, call);
  const parsed = schema.safeParse(await readJson(host, response));
  if (parsed.success) return parsed.data;
  const where = parsed.error.issues[0]?.path.join(".") ?? "";
  throw new CliError(`The ${host.name} at ${host.url} returned an invalid response (${where}). Is it Fairlead?`);
}

/** @returns a 2xx response. @throws CliError otherwise; the caller's abort passes through. */
export async function send(host: Host, call: Call): Promise<Response> {
  const credential = await host.credential();
  let response = await sendAgain(host, call, credential);
  if (response.status === 401 && host.credentialSetting === null) {
    await response.body?.cancel();
    response = await sendAgain(host, call, await host.credential(credential));
  }
  call.onHead?.(response.headers);
  if (!response.ok) throw await refusal(host, response);
  return response;
}

/** Retries a call whose response was lost, if it is safe to repeat. */
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

/** The request may have arrived, but its response was lost. */
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
  const advice = `Check that the server is running (\`fairlead server\`) and that ${host.urlSetting} is correct.`;
  if (cause instanceof Error && cause.name === "TimeoutError") {
    return new Unanswered(`The ${host.name} at ${host.url} did not respond in time. ${advice}`, { cause });
  }
  const proxy = proxyFailure(cause);
  if (proxy !== null) return new Unanswered(proxy, { cause });
  const message = `Cannot reach the ${host.name} at ${host.url}. ${advice}`;
  return codeBelow(cause) === "ECONNRESET" || codeBelow(cause) === "UND_ERR_SOCKET"
    ? new LostAnswer(message, { cause })
    : new Unanswered(message, { cause });
}

/** fetch reports the reason only in the error's cause. */
function codeBelow(error: unknown): unknown {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && "code" in cause ? cause.code : undefined;
}

async function readJson(host: Host, response: Response): Promise<unknown> {
  try {
    return await response.json();
  } catch (cause) {
    throw new CliError(`The ${host.name} at ${host.url} did not return JSON. Is it Fairlead?`, { cause });
  }
}

async function refusal(host: Host, response: Response): Promise<Refused> {
  const parsed = errorSchema.safeParse(await response.json().catch(() => null));
  if (!parsed.success) {
    return new Refused(`The ${host.name} at ${host.url} returned ${response.status} ${response.statusText}.`, null);
  }
  const { message, code, param = null, requestId, missingSecrets } = parsed.data.error;
  const facts = [code, requestId].filter(Boolean).join(", ");
  const said = facts === "" ? message : `${message} (${facts})`;
  const missing = missingSecrets.map(({ name }) => name);
  return new Refused(visible(said) + advice(code, host), code, { param, missingSecrets: missing });
}

const REFUSED_CREDENTIAL = ["invalid_credential", "expired_credential"];

function advice(code: string | null, { credentialSetting }: Host): string {
  if (code === null || !REFUSED_CREDENTIAL.includes(code)) return "";
  if (credentialSetting === null) return "\nRun `fairlead login`.";
  const { name, source } = credentialSetting;
  const inEnvironment = source === "the environment";
  if (name === "FAIRLEAD_API_KEY") {
    const change = inEnvironment ? "Set another key" : `Set another key in ${source}`;
    return `\nThis is the key in FAIRLEAD_API_KEY. ${change}; create one with \`fairlead key create NAME\`.`;
  }
  const remove = inEnvironment ? "run `unset FAIRLEAD_TOKEN`" : `remove FAIRLEAD_TOKEN from ${source}`;
  return (
    `\nThis is the token in FAIRLEAD_TOKEN, which takes precedence over a login. To use a login, ${remove}, ` +
    "and sign in with `fairlead login`."
  );
}
