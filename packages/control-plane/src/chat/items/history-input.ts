import { isObject } from "@fairlead/dialects/json/parse";
import {
  type ChatItem,
  callIdOf,
  estimateTokens,
  isCall,
  isOutput,
  itemTypeOf,
  partsOf,
  type ResponsesItem,
  roleOf,
} from "./chat-item.ts";
import type { NewTurnItems } from "./turn-input.ts";

/** The newest live items of a session that fit, in order. */
export interface HistoryTail {
  readonly items: readonly (ChatItem & { readonly tokens?: number })[];
  /** Number of live items before them. */
  readonly olderItems: number;
}

/** The part of a session's history that is sent to the model (decisions/0021): whole exchanges, with calls and outputs in pairs. Pure. */

export interface ModelInput {
  readonly input: readonly ResponsesItem[];
  /** Number of history items omitted because they did not fit. */
  readonly cutItems: number;
}

/** `items` are the stored ones (`BegunTurn`): of outputs, the new ones. */
export type TurnToSend = Pick<NewTurnItems, "kind" | "items" | "instructions">;

/** @param options.contextTokens the model's context minus its response. */
export function buildInput(
  history: HistoryTail,
  turn: TurnToSend,
  { contextTokens }: { readonly contextTokens: number },
): ModelInput {
  const sized = history.items.map(sizedItem);
  const from = firstFitting(sized, roomFor(turn, contextTokens));
  const kept = history.items.slice(from).map(({ item }) => item);
  return {
    input: [...turn.instructions, ...sendable([...kept, ...turn.items])],
    cutItems: history.olderItems + from,
  };
}

/** Stored items have their sizes. */
function sizedItem({ item, tokens }: HistoryTail["items"][number]): SizedItem {
  return { tokens: tokens ?? estimateTokens(item), isQuestion: isQuestion(item) };
}

export const isQuestion = (item: ResponsesItem): boolean => roleOf(item) === "user";

export interface ContextRoom {
  /** Tokens available for history. */
  readonly tokens: number;
  /** Keep the last exchange however long it is: outputs are useless without their calls. */
  readonly keepsLast: boolean;
}

export function roomFor({ kind, items, instructions }: TurnToSend, contextTokens: number): ContextRoom {
  const own = [...instructions, ...items].reduce((sum, item) => sum + estimateTokens(item), 0);
  return { tokens: contextTokens - own, keepsLast: kind === "outputs" };
}

export interface SizedItem {
  readonly tokens: number;
  /** Starts an exchange: a question with its responses, calls and outputs. */
  readonly isQuestion: boolean;
}

/** @param items of a history, in order. @returns the index of the first one kept; their number if none fits. */
export function firstFitting(items: readonly SizedItem[], room: ContextRoom): number {
  let from = items.length;
  let tokens = 0;
  for (let index = items.length - 1; index >= 0; index--) {
    const { tokens: own = 0, isQuestion: begins = false } = items[index] ?? {};
    tokens += own;
    const isLast = from === items.length;
    if (tokens > room.tokens && !(isLast && room.keepsLast)) break;
    // Items without their question are not sent either.
    if (begins) from = index;
  }
  return from;
}

/** Without IDs, which only their creator knows, so that every model accepts them. */
function sendable(items: readonly ResponsesItem[]): ResponsesItem[] {
  const paired = pairedItems(items);
  const lastQuestion = items.findLastIndex(isQuestion);
  return items.flatMap((item, index) => {
    if (itemTypeOf(item) === "message") return sentMessage(item);
    if (isCall(item) || isOutput(item)) return paired.has(index) ? [withoutId(item)] : [];
    // Thinking matters only until its calls have outputs; models ignore that of earlier exchanges.
    return index > lastQuestion && isThinkingToReturn(item) ? [item] : [];
  });
}

/**
 * Indexes of paired calls and outputs: upstreams would always reject the session if one lacked the other. An
 * interrupted call is omitted silently, because models mistake notes about it for a response.
 */
function pairedItems(items: readonly ResponsesItem[]): ReadonlySet<number> {
  const paired = new Set<number>();
  const open = new Map<string, number>();
  for (const [index, item] of items.entries()) {
    if (itemTypeOf(item) === "message") {
      if (isQuestion(item)) open.clear();
      continue;
    }
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

/** Cached by stored message, because the same history is sent on every turn. */
const sentMessages = new WeakMap<ResponsesItem, readonly ResponsesItem[]>();

function sentMessage(item: ResponsesItem): readonly ResponsesItem[] {
  let sent = sentMessages.get(item);
  if (sent === undefined) {
    sent = toSentMessage(item);
    sentMessages.set(item, sent);
  }
  return sent;
}

function toSentMessage({ role, content }: ResponsesItem): ResponsesItem[] {
  if (role !== "assistant") return [{ type: "message", role, content }];
  const parts = partsOf(content).flatMap(({ type, text, refusal }): object[] => {
    if (type === "output_text" && typeof text === "string" && text !== "") return [{ type, text }];
    return type === "refusal" && typeof refusal === "string" ? [{ type, refusal }] : [];
  });
  return parts.length === 0 ? [] : [{ type: "message", role, content: parts }];
}

/** A summary alone cannot be sent back: it refers to thoughts that only their creator has. */
function isThinkingToReturn(item: ResponsesItem): boolean {
  if (itemTypeOf(item) !== "reasoning") return false;
  const { encrypted_content: sealed, content } = item;
  return typeof sealed === "string" || (Array.isArray(content) && content.some(isObject));
}
