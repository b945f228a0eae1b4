import { responseEcho } from "../inference/bridge/response-echo.ts";
import type { JsonObject } from "../inference/bridge/wire.ts";
import { responseAsStream, type Telling } from "./told-response.ts";

/** What a `/new` turn is answered: no model is asked, and nothing of it is history (interface §6, design §7). Pure. */

/** An answer without any text makes agents ask again, each time for another session. */
const TEXT = "A new session has begun.";

export interface Acknowledged {
  readonly sessionId: string;
  /** The session's; null where nothing says which. */
  readonly model: string | null;
  /** Unix milliseconds. */
  readonly now: number;
}

/** @returns the whole event stream. */
export function acknowledgement({ sessionId, model, now }: Acknowledged, telling: Telling): string {
  return responseAsStream(acknowledgedResponse({ sessionId, model, now }, telling.requestId), telling);
}

function acknowledgedResponse({ sessionId, model, now }: Acknowledged, requestId: string): JsonObject {
  const seed = requestId.replace(/^[a-z]+_/, "");
  const second = Math.floor(now / 1000);
  const part = { type: "output_text", text: TEXT, annotations: [], logprobs: [] };
  return {
    ...responseEcho({}),
    id: `resp_${seed}`,
    object: "response",
    created_at: second,
    completed_at: second,
    status: "completed",
    // Clients throw where it is missing.
    model: model ?? "none",
    output: [{ id: `msg_${seed}_0`, type: "message", role: "assistant", status: "completed", content: [part] }],
    error: null,
    incomplete_details: null,
    usage: {
      input_tokens: 0,
      input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
      output_tokens: 0,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 0,
    },
    service_tier: "default",
    metadata: { session_id: sessionId },
  };
}
