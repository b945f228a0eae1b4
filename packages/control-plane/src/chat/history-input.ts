import { isObject } from "../inference/bridge/parse.ts";
import {
  callIdOf,
  estimateTokens,
  isCall,
  isOutput,
  partsOf,
  type ResponsesItem,
  roleOf,
  typeOf,
} from "./chat-item.ts";
import type { NewTurnItems } from "./turn-input.ts";
import type { HistoryTail } from "./turn-log.ts";

/** What of a session's history goes to the model (design §7): cut at whole exchanges, calls and outputs in pairs. Pure. */

export interface ModelInput {
  readonly input: readonly ResponsesItem[];
  /** How many items of the history were left out for want of room. */
  readonly cutItems: number;
}

/** `items` are those that were stored (`BegunTurn`): of outputs, the new ones. */
export type TurnToSend = Pick<NewTurnItems, "kind" | "items" | "instructions">;

/** @param options.contextTokens the model's context, less its answer. */
export function buildInput(
  history: HistoryTail,
  turn: TurnToSend,
  { contextTokens }: { readonly contextTokens: number },
): ModelInput {
  const sized = history.items.map(({ item }) => ({ tokens: estimateTokens(item), isQuestion: isQuestion(item) }));
  const from = firstFitting(sized, roomFor(turn, contextTokens));
  const kept = history.items.slice(from).map(({ item }) => item);
  return {
    input: [...turn.instructions, ...sendable([...kept, ...turn.items])],
    cutItems: history.olderItems + from,
  };
}

export const isQuestion = (item: ResponsesItem): boolean => roleOf(item) === "user";

export interface Room {
  /** For history. */
  readonly tokens: number;
  /** What the turn goes on with has to be there, however long it is: nobody can answer the outputs of calls that were cut. */
  readonly keepsLast: boolean;
}

export function roomFor({ kind, items, instructions }: TurnToSend, contextTokens: number): Room {
  const own = [...instructions, ...items].reduce((sum, item) => sum + estimateTokens(item), 0);
  return { tokens: contextTokens - own, keepsLast: kind === "outputs" };
}

export interface SizedItem {
  readonly tokens: number;
  /** It begins an exchange: a question with all that was answered, called and given for it. */
  readonly isQuestion: boolean;
}

/** @param items of a history, in order. @returns the index of the first one that is kept; their number where none is. */
export function firstFitting(items: readonly SizedItem[], room: Room): number {
  let from = items.length;
  let tokens = 0;
  for (let index = items.length - 1; index >= 0; index--) {
    const { tokens: own = 0, isQuestion: begins = false } = items[index] ?? {};
    tokens += own;
    const isLast = from === items.length;
    if (tokens > room.tokens && !(isLast && room.keepsLast)) break;
    // What has lost its question is not sent either.
    if (begins) from = index;
  }
  return from;
}

/** In the forms that every model takes back: no ids, which only their maker knows. */
function sendable(items: readonly ResponsesItem[]): ResponsesItem[] {
  const paired = pairedItems(items);
  const lastQuestion = items.findLastIndex(isQuestion);
  return items.flatMap((item, index) => {
    if (isCall(item) || isOutput(item)) return paired.has(index) ? [withoutId(item)] : [];
    if (typeOf(item) === "message") return toSentMessage(item);
    // Thinking counts while the calls that it led to are answered; models leave out that of earlier exchanges.
    return index > lastQuestion && isThinkingToReturn(item) ? [item] : [];
  });
}

/**
 * Indexes of calls and outputs that belong to each other: one without the other makes upstreams refuse the session for ever. A call
 * that was interrupted is left out without a word, since models take notes about it for an answer.
 */
function pairedItems(items: readonly ResponsesItem[]): ReadonlySet<number> {
  const paired = new Set<number>();
  const open = new Map<string, number>();
  for (const [index, item] of items.entries()) {
    if (isQuestion(item)) open.clear();
    const callId = callIdOf(item);
    if (callId === null) continue;
    if (isCall(item)) open.set(callId, index);
    const call = open.get(callId);
    if (!isOutput(item) || call === undefined) continue;
    open.delete(callId);
    paired.add(call).add(index);
  }
  return paired;
}

function withoutId({ id: _id, status: _status, ...item }: ResponsesItem): ResponsesItem {
  return item;
}

function toSentMessage({ role, content }: ResponsesItem): ResponsesItem[] {
  if (role !== "assistant") return [{ type: "message", role, content }];
  const parts = partsOf(content).flatMap(({ type, text, refusal }): object[] => {
    if (type === "output_text" && typeof text === "string" && text !== "") return [{ type, text }];
    return type === "refusal" && typeof refusal === "string" ? [{ type, refusal }] : [];
  });
  return parts.length === 0 ? [] : [{ type: "message", role, content: parts }];
}

/** A summary alone cannot be taken back: it names thoughts that only their maker keeps. */
function isThinkingToReturn(item: ResponsesItem): boolean {
  if (typeOf(item) !== "reasoning") return false;
  const { encrypted_content: sealed, content } = item;
  return typeof sealed === "string" || (Array.isArray(content) && content.some(isObject));
}
