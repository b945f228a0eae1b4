import { boundedBody } from "@fairlead/hosting/bounded-response";
import type { Clock } from "@fairlead/protocol/values/clock";
import { parseJson } from "@fairlead/protocol/values/parse-json";
import { z } from "zod";
import { directFetch, type OutgoingFetch } from "../../../installation/outgoing/outgoing-fetch.ts";
import { ProviderRefusal, type RefusalKind } from "../machine-provider.ts";

/** Calls the Hetzner Cloud API and maps its errors. */

export interface HetznerCall {
  readonly method: "GET" | "POST" | "DELETE";
  /** Relative to the base URL, including the query. */
  readonly path: string;
  readonly body?: object;
}

export interface HetznerApiParts {
  readonly url: string;
  readonly clock: Clock;
  readonly fetch?: OutgoingFetch;
}

const MAX_RESPONSE_BYTES = 4 * 1024 * 1024;
const TIMEOUT_MS = 30_000;
const MAX_WORDS = 500;

const errorSchema = z.object({ error: z.object({ code: z.string(), message: z.string() }) });

export class HetznerApi {
  readonly #url: string;
  readonly #clock: Clock;
  readonly #fetch: OutgoingFetch;

  constructor({ url, clock, fetch = directFetch }: HetznerApiParts) {
    this.#url = url;
    this.#clock = clock;
    this.#fetch = fetch;
  }

  /** @throws ProviderRefusal */
  async call<T>(token: string, call: HetznerCall, schema: z.ZodType<T>): Promise<T> {
    const { response, text } = await this.#send(token, call);
    if (!response.ok) throw this.#refusal(response, text);
    const parsed = schema.safeParse(jsonIn(text));
    if (parsed.success) return parsed.data;
    // zod's messages may repeat the response; the path is enough.
    const place = parsed.error.issues[0]?.path.join(".") ?? "";
    throw unavailable(`its response to ${call.method} ${pathOf(call)} is invalid: ${place || "not JSON"}`);
  }

  /** Null if it does not exist. @throws ProviderRefusal */
  async find<T>(token: string, call: HetznerCall, schema: z.ZodType<T>): Promise<T | null> {
    try {
      return await this.call(token, call, schema);
    } catch (error) {
      if (error instanceof HetznerRefusal && error.status === 404) return null;
      throw error;
    }
  }

  async #send(token: string, { method, path, body }: HetznerCall): Promise<{ response: Response; text: string }> {
    try {
      const response = await this.#fetch(`${this.#url}${path}`, {
        method,
        redirect: "error",
        signal: AbortSignal.timeout(TIMEOUT_MS),
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      return { response, text: Buffer.from(await boundedBody(response, MAX_RESPONSE_BYTES)).toString() };
    } catch (cause) {
      const why = cause instanceof Error && cause.name === "TimeoutError" ? "within 30 seconds" : "over the network";
      throw unavailable(`it does not respond ${why}`);
    }
  }

  #refusal({ status, headers }: Response, text: string): HetznerRefusal {
    const parsed = errorSchema.safeParse(jsonIn(text));
    const { code, message } = parsed.success ? parsed.data.error : { code: "", message: "" };
    const words = code === "" ? `HTTP ${status}` : `${message} (${code})`;
    const kind = kindOf(status, code);
    const retryAfterMs = kind === "rate_limited" ? this.#retryAfterMs(headers) : null;
    return new HetznerRefusal(status, { kind, providerWords: words.slice(0, MAX_WORDS), retryAfterMs });
  }

  /** `Retry-After` if sent. `RateLimit-Reset` is when all calls are available again; they return one by one, so wait for a single one. */
  #retryAfterMs(headers: Headers): number {
    const retryAfter = Number(headers.get("retry-after") ?? Number.NaN);
    if (retryAfter > 0) return retryAfter * 1000;
    const limit = Number(headers.get("ratelimit-limit") ?? Number.NaN);
    const resetMs = Number(headers.get("ratelimit-reset") ?? Number.NaN) * 1000 - this.#clock.now();
    return limit > 0 && resetMs > 0 ? Math.max(1000, Math.ceil(resetMs / limit)) : 1000;
  }
}

class HetznerRefusal extends ProviderRefusal {
  readonly status: number;

  constructor(status: number, refusal: ConstructorParameters<typeof ProviderRefusal>[0]) {
    super(refusal);
    this.status = status;
  }
}

/** By error code; most statuses are not documented. */
const KINDS: Readonly<Record<string, RefusalKind>> = {
  unauthorized: "bad_token",
  token_readonly: "read_only_token",
  forbidden: "wrong_project",
  resource_unavailable: "no_capacity",
  placement_error: "no_capacity",
  resource_limit_exceeded: "quota",
  uniqueness_error: "already_exists",
  rate_limit_exceeded: "rate_limited",
  invalid_input: "bad_input",
  json_error: "bad_input",
  not_found: "bad_input",
  unsupported_error: "bad_input",
  deprecated_api_endpoint: "outdated",
};

function kindOf(status: number, code: string): RefusalKind {
  const kind = KINDS[code];
  if (kind !== undefined) return kind;
  if (status === 401) return "bad_token";
  if (status === 429) return "rate_limited";
  if (status === 410) return "outdated";
  return status === 400 || status === 422 ? "bad_input" : "unavailable";
}

function unavailable(providerWords: string): ProviderRefusal {
  return new ProviderRefusal({ kind: "unavailable", providerWords });
}

function pathOf({ path }: HetznerCall): string {
  return path.split("?", 1)[0] ?? "";
}

function jsonIn(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return null;
  }
}
