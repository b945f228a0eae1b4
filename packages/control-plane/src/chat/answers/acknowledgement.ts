import type { JsonObject } from "@fairlead/dialects/convert/wire";
import { responseEcho } from "@fairlead/dialects/responses/response-echo";
import { type ResponseViewOptions, viewAsStream } from "./response-view.ts";

/** The response to a `/new` turn, which calls no model and is not stored (docs/interface.md §6). Pure. */

/** Agents retry empty responses, each time in a new session. */
const TEXT = "Started a new session.";

export interface Acknowledged {
  readonly sessionId: string;
  /** The session's model; null if unknown. */
  readonly model: string | null;
  /** Unix milliseconds. */
  readonly now: number;
}

/** @returns the whole event stream. */
export function acknowledgement({ sessionId, model, now }: Acknowledged, telling: ResponseViewOptions): string {
  return viewAsStream(acknowledgedResponse({ sessionId, model, now }, telling.requestId), telling);
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
    // Some clients throw if it is missing.
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
