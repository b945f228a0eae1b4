import { DomainError } from "@fairlead/protocol/errors";
import type { ResponsesContext } from "../responses-to-chat/responses-to-chat-request.ts";
import type { ResponseObject } from "../wire.ts";
import { ResponsesStream } from "./chat-to-responses-stream.ts";

/**
 * Converts a complete chat completion to a response.
 * @param answer parsed by `parseExact`.
 * @throws DomainError `upstream_failed` if it is not a chat completion.
 */
export function toResponse(answer: unknown, context: ResponsesContext): ResponseObject {
  const stream = new ResponsesStream(context);
  const events = [...stream.push(answer), ...stream.end()];
  const last = events.at(-1);
  if (last?.type === "response.completed" || last?.type === "response.incomplete") return last.response;
  const message = events.flatMap((event) => (event.type === "error" ? [event.message] : []))[0];
  throw new DomainError("upstream_failed", message ?? "The upstream's response is incomplete.");
}
