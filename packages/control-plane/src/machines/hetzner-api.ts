import type { Clock } from "@fairlead/protocol/clock";
import { z } from "zod";
import { ProviderRefusal, type RefusalKind } from "./machine-provider.ts";

/** One call of the Hetzner Cloud API, and what its refusals mean. */

export interface HetznerCall {
  readonly method: "GET" | "POST" | "DELETE";
  /** Below the API's base URL, with its query. */
  readonly path: string;
  readonly body?: object;
}

const TIMEOUT_MS = 30_000;
const MAX_WORDS = 500;

const errorSchema = z.object({ error: z.object({ code: z.string(), message: z.string() }) });

export class HetznerApi {
  readonly #url: string;
  readonly #clock: Clock;

  constructor(url: string, clock: Clock) {
    this.#url = url;
    this.#clock = clock;
  }

  /** @throws ProviderRefusal */
  async call<T>(token: string, call: HetznerCall, schema: z.ZodType<T>): Promise<T> {
    const { response, text } = await this.#send(token, call);
    if (!response.ok) throw this.#refusal(response, text);
    const parsed = schema.safeParse(parseJson(text));
    if (parsed.success) return parsed.data;
    // The words of zod may repeat what was answered; the place is enough.
    const place = parsed.error.issues[0]?.path.join(".") ?? "";
    throw unavailable(`its answer to ${call.method} ${pathOf(call)} cannot be read: ${place || "no JSON"}`);
  }

  /** Null where there is no such thing. @throws ProviderRefusal */
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
      const response = await fetch(`${this.#url}${path}`, {
        method,
        redirect: "error",
        signal: AbortSignal.timeout(TIMEOUT_MS),
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      return { response, text: await response.text() };
    } catch (cause) {
      const why = cause instanceof Error && cause.name === "TimeoutError" ? "within 30 seconds" : "over the network";
      throw unavailable(`it does not answer ${why}`);
    }
  }

  #refusal({ status, headers }: Response, text: string): HetznerRefusal {
    const parsed = errorSchema.safeParse(parseJson(text));
    const { code, message } = parsed.success ? parsed.data.error : { code: "", message: "" };
    const words = code === "" ? `HTTP ${status}` : `${message} (${code})`;
    const kind = kindOf(status, code);
    const retryAfterMs = kind === "rate_limited" ? this.#retryAfterMs(headers) : null;
    return new HetznerRefusal(status, { kind, providerWords: words.slice(0, MAX_WORDS), retryAfterMs });
  }

  /**
   * `Retry-After` where it is sent. `RateLimit-Reset` is when all calls are there again, and they come back one by one: the next
   * is due after the share of a single one.
   */
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

/** By its error codes; the statuses beside most of them are not documented. */
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
};

function kindOf(status: number, code: string): RefusalKind {
  const kind = KINDS[code];
  if (kind !== undefined) return kind;
  if (status === 401) return "bad_token";
  if (status === 429) return "rate_limited";
  return status === 400 || status === 422 ? "bad_input" : "unavailable";
}

function unavailable(providerWords: string): ProviderRefusal {
  return new ProviderRefusal({ kind: "unavailable", providerWords });
}

function pathOf({ path }: HetznerCall): string {
  return path.split("?", 1)[0] ?? "";
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
