import { BYTES_PER_TOKEN, type TokenUsage } from "@fairlead/dialects/calls/token-usage";
import type { JsonObject } from "@fairlead/dialects/convert/wire";
import { isObject } from "@fairlead/dialects/json/parse";

/** One item of a session's history (decisions/0021). Pure. */

/** Its JSON as it was submitted or streamed: a message, a call, the output of one, thinking. */
export type ResponsesItem = JsonObject;

/** `superseded`: its turn was regenerated; not part of history or input. `in_progress`: its turn is running; never stored. */
export type ChatItemStatus = "completed" | "in_progress" | "incomplete" | "superseded";

export interface ChatItem {
  /** The item's own ID if it is new in the session, so that the streamed ID equals the stored one. */
  readonly id: string;
  readonly turnId: string;
  /** Increases within the session; positions of superseded turns are not reused. */
  readonly position: number;
  readonly status: ChatItemStatus;
  readonly item: ResponsesItem;
  /** Unix milliseconds. */
  readonly createdAt: number;
}

/** An item with the data returned about it. */
export interface StoredItem extends ChatItem {
  /** Usage of the whole turn, on the last item of its response. */
  readonly usage: TokenUsage | null;
}

/** Items between two positions, both exclusive; null: unbounded. */
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
  /** Whether more items follow: a page of large items contains fewer than requested. */
  readonly more: boolean;
}

/** Messages may omit the type. */
export function itemTypeOf({ type, role }: ResponsesItem): string {
  if (typeof type === "string") return type;
  return typeof role === "string" ? "message" : "unknown";
}

/** Null if it is not a message. */
export function roleOf(item: ResponsesItem): string | null {
  return itemTypeOf(item) === "message" && typeof item["role"] === "string" ? item["role"] : null;
}

const CALLS: ReadonlySet<string> = new Set(["function_call", "custom_tool_call"]);
const OUTPUT_SUFFIX = "_output";

export const isCall = (item: ResponsesItem): boolean => CALLS.has(itemTypeOf(item));
export const outputTypeOf = (callType: string): string => `${callType}${OUTPUT_SUFFIX}`;

export function isOutput(item: ResponsesItem): boolean {
  const type = itemTypeOf(item);
  return type.endsWith(OUTPUT_SUFFIX) && CALLS.has(type.slice(0, -OUTPUT_SUFFIX.length));
}

/** Null if it is neither a client-side tool call nor its output. */
export function callIdOf(item: ResponsesItem): string | null {
  const { call_id: id } = item;
  return typeof id === "string" && (isCall(item) || isOutput(item)) ? id : null;
}

const TEXT_PARTS: ReadonlySet<unknown> = new Set(["input_text", "output_text", "text"]);

/** A message's texts and refusals, concatenated. "" for other items. */
export function textOf(item: ResponsesItem): string {
  if (itemTypeOf(item) !== "message") return "";
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

/** Only messages of users and models; calls, outputs and thinking are omitted (docs/interface.md §2). */
export function renderHistory(items: readonly Pick<ChatItem, "item" | "status">[]): HistoryMessage[] {
  return items.flatMap(({ item, status }) => {
    const role = roleOf(item);
    return role === null || status === "superseded" ? [] : [{ role, content: textOf(item) }];
  });
}

/** Lower estimate for an image, file or audio. */
const TOKENS_PER_ATTACHMENT = 1000;
/** Not a model's real count. Ensures that large attachments, which are sent again on each turn, are cut eventually. */
const ATTACHED_BYTES_PER_TOKEN = 200;
/** Overhead per item in a model's prompt. */
const TOKENS_PER_ITEM = 4;

/** Estimated tokens of a model's context. */
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
