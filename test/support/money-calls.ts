import { z } from "zod";
import type { Dialect } from "../../packages/dialects/src/calls/dialect.ts";
import { DEEDS, type Deed } from "./metered-upstream.ts";

/** Calls of a money drill: what is asked, when the caller leaves, and what came of it. */

export interface DrillCall {
  readonly dialect: Dialect;
  readonly model: string;
  readonly stream: boolean;
  readonly deed: Deed;
  readonly tokens: number;
  /** Whether the caller leaves: a stream at its first bytes, another call soon after it was made. */
  readonly leaves: boolean;
  /** Whether by the key with a small budget. */
  readonly poor: boolean;
}

export interface DrillResult {
  readonly call: DrillCall;
  /** Null where no answer's head came. */
  readonly requestId: string | null;
  readonly status: number | null;
  readonly headers: Headers | null;
  readonly text: string;
  /** Whether the caller got all of a good answer. */
  readonly delivered: boolean;
}

/** Small numbers that are the same for the same seed (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const LONG_TOKENS = 1400;
export const LIMIT_TOKENS = 256;
/** Failures are the exception, so that most of the money is spent. */
const ALWAYS: readonly Deed[] = ["answer", "answer slowly"];

export function randomCalls(count: number, random: () => number): DrillCall[] {
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;
  return Array.from({ length: count }, () => {
    const deed = pick(random() < 0.6 ? ALWAYS : DEEDS);
    const long = deed === "answer at length" || deed === "endless";
    return {
      dialect: pick(["chat", "responses"] as const),
      model: pick(["chatty/m", "both/m"]),
      stream: long || random() < 0.5,
      deed,
      tokens: long ? LONG_TOKENS : 1 + Math.floor(random() * 200),
      leaves: random() < 0.15,
      poor: random() < 0.1,
    };
  });
}

const money = z.object({ neededNanoDollars: z.number(), leftNanoDollars: z.number(), heldNanoDollars: z.number() });
const refusalSchema = z.object({ error: z.object({ code: z.string(), money }) });

/** The refusal for money that came instead of an answer; null for anything else. */
export function refusalOf({ status, text }: DrillResult): z.infer<typeof refusalSchema>["error"] | null {
  return status === 402 ? refusalSchema.parse(JSON.parse(text)).error : null;
}

const LEAVE_MS = 60;

/** Makes one call, and tells what came of it, whatever that was. */
export async function makeCall(url: string, key: string, call: DrillCall): Promise<DrillResult> {
  const leaving = new AbortController();
  if (call.leaves && !call.stream) setTimeout(() => leaving.abort(), LEAVE_MS);
  let text = "";
  let head: Response | null = null;
  let ended = false;
  try {
    head = await fetch(`${url}${call.dialect === "chat" ? "/v1/chat/completions" : "/v1/responses"}`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify(bodyOf(call)),
      signal: leaving.signal,
    });
    const decoder = new TextDecoder();
    for await (const piece of head.body ?? []) {
      text += decoder.decode(piece as Uint8Array, { stream: true });
      if (call.leaves && head.ok) leaving.abort();
    }
    ended = true;
  } catch {
    // It broke off, or the caller left: what came until then is told.
  }
  const whole = ended && head?.status === 200 && (call.stream ? endsWell(call.dialect, text) : true);
  const { status = null, headers = null } = head ?? {};
  return { call, requestId: headers?.get("x-request-id") ?? null, status, headers, text, delivered: whole };
}

function endsWell(dialect: Dialect, text: string): boolean {
  return dialect === "chat" ? text.endsWith("data: [DONE]\n\n") : text.includes("event: response.completed");
}

function bodyOf({ dialect, model, stream, deed, tokens }: DrillCall): object {
  const question = JSON.stringify({ deed, tokens });
  const call =
    dialect === "chat"
      ? { model, stream, messages: [{ role: "user", content: question }] }
      : { model, stream, input: question };
  // A long stream has no limit of its own: its money is set aside step by step.
  if (tokens > LIMIT_TOKENS) return call;
  return { ...call, [dialect === "chat" ? "max_tokens" : "max_output_tokens"]: LIMIT_TOKENS };
}
