import { toInputContent } from "@fairlead/dialects/convert/chat-to-responses/chat-content-to-responses";
import type { JsonObject } from "@fairlead/dialects/convert/wire";
import { isObject, objectAt, textAt } from "@fairlead/dialects/json/parse";
import { DomainError } from "@fairlead/protocol/errors";
import { isOutput, itemTypeOf, type ResponsesItem, textOf } from "./chat-item.ts";

/** The input that one turn adds to its session. Pure. */
export interface NewTurnItems {
  /** The last user message, or outputs for the tool calls of the previous response. */
  readonly kind: "question" | "outputs";
  readonly items: readonly ResponsesItem[];
  /** The question's text; "" for outputs or without text. */
  readonly text: string;
  /** The body's system and developer messages, which apply only to this turn and are never stored. */
  readonly instructions: readonly ResponsesItem[];
}

/**
 * Reads the turn from a body of either dialect: the last user message, or tool outputs at the end. Earlier messages come from the session.
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
  const question = said.findLast(({ value }) => value["role"] === "user" && itemTypeOf(value) === "message");
  if (question === undefined) throw invalid("must contain a user message");
  const item = toMessage(question);
  if (isEmpty(item)) throw invalid("must not be empty", `${question.path}.content`);
  return { kind: "question", items: [item], text: textOf(item), instructions };
}

/** The history can continue with only one choice. */
function requireOneAnswer({ n = null }: JsonObject): void {
  if (n === null || n === 1) return;
  throw invalid("must be 1, because a session continues with a single response", "n");
}

/** Other values would lead to a response in a form that the caller does not expect. */
function requireStreamOrNot({ stream = null }: JsonObject): void {
  if (stream !== null && typeof stream !== "boolean") throw invalid("must be true or false", "stream");
}

interface Submitted {
  readonly value: JsonObject;
  /** `messages[3]` */
  readonly path: string;
}

/** SDKs configured with the chat routes send `input`. */
function messagesOf(body: JsonObject): Submitted[] {
  const name = (body["messages"] ?? null) === null ? "input" : "messages";
  const list = body[name] ?? null;
  if (name === "input" && typeof list === "string") {
    return [{ value: { role: "user", content: list }, path: "input" }];
  }
  if (list === null) throw invalid("is missing");
  if (!Array.isArray(list)) throw invalid("must be a list", name);
  if (list.length === 0) throw invalid("must contain at least one message");
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

/** The chat dialect does not say which kind of call an output belongs to; the stored call does. */
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
