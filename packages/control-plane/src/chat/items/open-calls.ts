import { DomainError } from "@fairlead/protocol/errors";
import {
  type ChatItem,
  callIdOf,
  isCall,
  isOutput,
  itemTypeOf,
  outputTypeOf,
  type ResponsesItem,
} from "./chat-item.ts";

/** Finds tool calls that wait for their output. Pure. */

/** @returns the types of open calls by call id, only of the newest response. */
function openCalls(history: readonly ChatItem[]): Map<string, string> {
  const answerEnd = history.findLastIndex(({ item }) => !isOutput(item));
  const answer = history[answerEnd];
  const open = new Map<string, string>();
  if (answer === undefined) return open;
  for (const { turnId, item } of history) {
    const callId = callIdOf(item);
    if (callId !== null && isCall(item) && turnId === answer.turnId) open.set(callId, itemTypeOf(item));
  }
  for (const { item } of history.slice(answerEnd + 1)) open.delete(callIdOf(item) ?? "");
  return open;
}

/**
 * The new outputs, in the form of their call. Clients resend all outputs of a response.
 * @throws DomainError `invalid_request` if none is new
 */
export function newOutputs(outputs: readonly ResponsesItem[], history: readonly ChatItem[]): ResponsesItem[] {
  const open = openCalls(history);
  const found = outputs.flatMap((output) => {
    const callId = callIdOf(output) ?? "";
    const callType = open.get(callId);
    open.delete(callId);
    return callType === undefined ? [] : [{ ...output, type: outputTypeOf(callType) }];
  });
  if (found.length > 0) return found;
  const message = "`messages`: the tool outputs at the end do not match an open tool call of this session.";
  throw new DomainError("invalid_request", message, { param: "messages" });
}
