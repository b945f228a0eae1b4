import { DomainError } from "@fairlead/protocol/errors";
import { ResponsesStream } from "./chat-to-responses-stream.ts";
import type { ResponsesContext } from "./responses-to-chat-request.ts";
import type { ResponseObject } from "./wire.ts";

/**
 * A whole chat completion as a response: what the same answer would be as a stream, its events aside.
 *
 * @param answer parsed by `parseExact`.
 * @throws DomainError `upstream_failed` for what is no answer.
 */
export function toResponse(answer: unknown, context: ResponsesContext): ResponseObject {
  const stream = new ResponsesStream(context);
  const events = [...stream.push(answer), ...stream.end()];
  const last = events.at(-1);
  if (last?.type === "response.completed" || last?.type === "response.incomplete") return last.response;
  const message = events.flatMap((event) => (event.type === "error" ? [event.message] : []))[0];
  throw new DomainError("upstream_failed", message ?? "The upstream's answer is not complete.");
}
