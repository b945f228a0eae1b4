import { isObject } from "../inference/bridge/parse.ts";
import type { JsonObject } from "../inference/bridge/wire.ts";
import { BYTES_PER_TOKEN, type TokenUsage } from "../inference/token-usage.ts";

/** One item of a session's history (design §7). Pure. */

/** Its JSON as it was submitted or streamed: a message, a call, the output of one, thinking. */
export type ResponsesItem = JsonObject;

/** `superseded`: of a turn that was asked again; out of history and input. `in_progress`: of one that runs; never stored. */
export type ChatItemStatus = "completed" | "in_progress" | "incomplete" | "superseded";

export interface ChatItem {
  /** The item's own id where it has one that is new in its session: the id that was streamed is the id that is stored. */
  readonly id: string;
  readonly turnId: string;
  /** Counts up within the session; what a superseded turn had is not given again. */
  readonly position: number;
  readonly status: ChatItemStatus;
  readonly item: ResponsesItem;
  /** Unix milliseconds. */
  readonly createdAt: number;
}

/** An item with what is told of it. */
export interface StoredItem extends ChatItem {
  /** Of the whole turn, on the last item of its answer. */
  readonly usage: TokenUsage | null;
}

/** Items between two positions, neither of them included; null: no bound. */
export interface ItemRange {
  readonly after: number | null;
  readonly before: number | null;
  readonly order: "asc" | "desc";
  readonly limit: number;
  readonly withSuperseded: boolean;
}

/** One page of a range. */
export interface ItemPage {
  readonly items: readonly StoredItem[];
  /** Whether the range goes on behind it: a page of large items holds fewer than were asked for. */
  readonly more: boolean;
}

/** A message may leave its type out. */
export function typeOf({ type, role }: ResponsesItem): string {
  if (typeof type === "string") return type;
  return typeof role === "string" ? "message" : "unknown";
}

/** Null for what is no message. */
export function roleOf(item: ResponsesItem): string | null {
  return typeOf(item) === "message" && typeof item["role"] === "string" ? item["role"] : null;
}

const CALLS: ReadonlySet<string> = new Set(["function_call", "custom_tool_call"]);
const OUTPUT_SUFFIX = "_output";

export const isCall = (item: ResponsesItem): boolean => CALLS.has(typeOf(item));
export const outputTypeOf = (callType: string): string => `${callType}${OUTPUT_SUFFIX}`;

export function isOutput(item: ResponsesItem): boolean {
  const type = typeOf(item);
  return type.endsWith(OUTPUT_SUFFIX) && CALLS.has(type.slice(0, -OUTPUT_SUFFIX.length));
}

/** Null for what is neither a call that a client answers nor such an answer. */
export function callIdOf(item: ResponsesItem): string | null {
  const { call_id: id } = item;
  return typeof id === "string" && (isCall(item) || isOutput(item)) ? id : null;
}

const TEXT_PARTS: ReadonlySet<unknown> = new Set(["input_text", "output_text", "text"]);

/** What a message says: its texts and refusals, one after the other. "" for what is no message. */
export function textOf(item: ResponsesItem): string {
  if (typeOf(item) !== "message") return "";
  const { content } = item;
  if (typeof content === "string") return content;
  return partsOf(content)
    .map((part) => textOfPart(part) ?? "")
    .join("");
}

function textOfPart({ type, text, refusal }: JsonObject): string | null {
  if (TEXT_PARTS.has(type) && typeof text === "string") return text;
  return type === "refusal" && typeof refusal === "string" ? refusal : null;
}

export const partsOf = (content: unknown): readonly JsonObject[] =>
  Array.isArray(content) ? content.filter(isObject) : [];

export interface HistoryMessage {
  readonly role: string;
  readonly content: string;
}

/** Messages of people and models alone: calls, their outputs and thinking are no part of what was said (interface §2). */
export function renderHistory(items: readonly Pick<ChatItem, "item" | "status">[]): HistoryMessage[] {
  return items.flatMap(({ item, status }) => {
    const role = roleOf(item);
    return role === null || status === "superseded" ? [] : [{ role, content: textOf(item) }];
  });
}

/** What an image, a file or a sound costs about: at least so much. */
const TOKENS_PER_ATTACHMENT = 1000;
/** Not what models count, but so many bytes of attachments go to them anew with every turn that they have to be cut some time. */
const ATTACHED_BYTES_PER_TOKEN = 200;
/** What stands around an item in a model's prompt. */
const TOKENS_PER_ITEM = 4;

/** About how many tokens of a model's context it takes. */
export function estimateTokens(item: ResponsesItem): number {
  const { content, output } = item;
  const told = content ?? output;
  const named = isCall(item) ? tokensOfText(JSON.stringify(item)) : 0;
  if (typeof told === "string") return TOKENS_PER_ITEM + named + tokensOfText(told);
  if (!Array.isArray(told)) return TOKENS_PER_ITEM + (named || tokensOfText(JSON.stringify(item)));
  return partsOf(told).reduce((sum, part) => sum + tokensOfPart(part), TOKENS_PER_ITEM);
}

function tokensOfPart(part: JsonObject): number {
  const text = textOfPart(part) ?? part["text"];
  if (typeof text === "string") return tokensOfText(text);
  return Math.max(TOKENS_PER_ATTACHMENT, Math.ceil(JSON.stringify(part).length / ATTACHED_BYTES_PER_TOKEN));
}

const tokensOfText = (text: string): number => Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN);
