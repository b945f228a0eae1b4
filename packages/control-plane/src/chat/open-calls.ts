import { DomainError } from "@fairlead/protocol/errors";
import { type ChatItem, callIdOf, isCall, isOutput, outputTypeOf, type ResponsesItem, typeOf } from "./chat-item.ts";

/** Which calls of tools wait for their outputs (design §7). Pure. */

/** @returns by call id: the type of the call. Only of the newest answer: what the model has gone on after is over. */
function openCalls(history: readonly ChatItem[]): Map<string, string> {
  const answerEnd = history.findLastIndex(({ item }) => !isOutput(item));
  const answer = history[answerEnd];
  const open = new Map<string, string>();
  if (answer === undefined) return open;
  for (const { turnId, item } of history) {
    const callId = callIdOf(item);
    if (callId !== null && isCall(item) && turnId === answer.turnId) open.set(callId, typeOf(item));
  }
  for (const { item } of history.slice(answerEnd + 1)) open.delete(callIdOf(item) ?? "");
  return open;
}

/**
 * The outputs that are new: clients send all of an answer's once more. Each takes the form that its call asks for.
 * @throws DomainError `invalid_request` where none is
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
  const message = "`messages`: the tool outputs at the end answer no call that is open in this session.";
  throw new DomainError("invalid_request", message, { param: "messages" });
}
