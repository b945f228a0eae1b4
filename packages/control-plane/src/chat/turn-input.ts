import { DomainError } from "@fairlead/protocol/errors";
import { toInputContent } from "../inference/bridge/chat-content-to-responses.ts";
import { isObject, objectAt, textAt } from "../inference/bridge/parse.ts";
import type { JsonObject } from "../inference/bridge/wire.ts";
import { isOutput, type ResponsesItem, textOf, typeOf } from "./chat-item.ts";

/** What one turn adds to its session (design §7). Pure. */
export interface NewTurnItems {
  /** The last user message, or what tools gave for calls of the answer before. */
  readonly kind: "question" | "outputs";
  readonly items: readonly ResponsesItem[];
  /** Of the question; "" for outputs, and for one without text. */
  readonly text: string;
  /** The body's system and developer messages: for this turn alone, never stored. */
  readonly instructions: readonly ResponsesItem[];
}

/**
 * Reads the turn of a body of either dialect: the last user message drives it, or tool outputs at its end; whatever else was said
 * before is the session's to know.
 * @throws DomainError `invalid_request` with `param`
 */
export function readTurn(body: JsonObject): NewTurnItems {
  requireOneAnswer(body);
  requireStreamOrNot(body);
  const messages = messagesOf(body);
  const instructions = messages.filter(isInstruction).map(toMessage);
  const said = messages.filter((message) => !isInstruction(message));
  const firstOutput = said.findLastIndex(({ value }) => !isToolOutput(value)) + 1;
  const outputs = said.slice(firstOutput).map(toOutput);
  if (outputs.length > 0) return { kind: "outputs", items: outputs, text: "", instructions };
  const question = said.findLast(({ value }) => value["role"] === "user" && typeOf(value) === "message");
  if (question === undefined) throw invalid("must hold a message of the user");
  const item = toMessage(question);
  if (isEmpty(item)) throw invalid("must not be empty", `${question.path}.content`);
  return { kind: "question", items: [item], text: textOf(item), instructions };
}

/** Of several answers none would be the one that the history goes on with. */
function requireOneAnswer({ n = null }: JsonObject): void {
  if (n === null || n === 1) return;
  throw invalid("must be 1 in a chat, since one answer is what the session goes on with", "n");
}

/** A wish that is misread would be answered in a form that its caller cannot read. */
function requireStreamOrNot({ stream = null }: JsonObject): void {
  if (stream !== null && typeof stream !== "boolean") throw invalid("must be true or false", "stream");
}

interface Submitted {
  readonly value: JsonObject;
  /** `messages[3]` */
  readonly path: string;
}

/** SDKs that are pointed at the chat routes send `input`. */
function messagesOf(body: JsonObject): Submitted[] {
  const name = (body["messages"] ?? null) === null ? "input" : "messages";
  const list = body[name] ?? null;
  if (name === "input" && typeof list === "string") {
    return [{ value: { role: "user", content: list }, path: "input" }];
  }
  if (list === null) throw invalid("is missing");
  if (!Array.isArray(list)) throw invalid("must be a list", name);
  if (list.length === 0) throw invalid("must hold at least one message");
  return list.map((value: unknown, index) => {
    const path = `${name}[${index}]`;
    return { value: objectAt(value, path), path };
  });
}

const isInstruction = ({ value }: Submitted): boolean => value["role"] === "system" || value["role"] === "developer";

const isToolOutput = (value: JsonObject): boolean => value["role"] === "tool" || isOutput(value);

function toMessage({ value, path }: Submitted): ResponsesItem {
  const content = toInputContent(value["content"], `${path}.content`);
  return {
    type: "message",
    role: value["role"],
    content: typeof content === "string" ? [{ type: "input_text", text: content }] : content,
  };
}

/** In the chat dialect nothing tells what kind of call it answers: the stored call does. */
function toOutput({ value, path }: Submitted): ResponsesItem {
  if (isOutput(value)) {
    textAt(value["call_id"], `${path}.call_id`);
    const { type, call_id, output } = value;
    return { type, call_id, output: toInputContent(output, `${path}.output`) };
  }
  return {
    type: "function_call_output",
    call_id: textAt(value["tool_call_id"], `${path}.tool_call_id`),
    output: toInputContent(value["content"], `${path}.content`),
  };
}

function isEmpty(item: ResponsesItem): boolean {
  const { content } = item;
  const others = Array.isArray(content) && content.some((part) => !isObject(part) || typeof part["text"] !== "string");
  return !others && textOf(item).trim() === "";
}

function invalid(what: string, param = "messages"): DomainError {
  return new DomainError("invalid_request", `\`${param}\`: ${what}.`, { param });
}
