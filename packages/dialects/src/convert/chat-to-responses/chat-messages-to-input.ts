import type { ResponseInput, ResponseInputItem } from "openai/resources/responses/responses";
import { z } from "zod";
import { listAt, objectAt, parseAt, refusal, textAt, without } from "../../json/parse.ts";
import type { AnswerIds } from "../bridge-call.ts";
import type { JsonObject } from "../wire.ts";
import { toInputContent } from "./chat-content-to-responses.ts";

interface Input {
  readonly input: ResponseInput;
  /** Paths that the responses dialect cannot express. */
  readonly ignored: readonly string[];
}

const messagesSchema = z.array(z.unknown()).min(1, { error: "must contain at least one message" });
const roleSchema = z.enum(["system", "developer", "user", "assistant", "tool"], {
  error: "must be system, developer, user, assistant or tool",
});

/** Converts `messages` to `input`. @throws DomainError `invalid_request` naming the message. */
export function toInput(messages: unknown, ids: AnswerIds): Input {
  const reader = new MessageReader(ids);
  for (const [index, each] of parseAt(messagesSchema, messages, "messages").entries()) {
    reader.read(objectAt(each, `messages[${index}]`), `messages[${index}]`);
  }
  return { input: reader.items, ignored: reader.ignored };
}

const assistantPartSchema = z.union([
  z.object({ type: z.literal("text"), text: z.string() }),
  z.object({ type: z.literal("refusal"), refusal: z.string() }),
]);
const assistantContentSchema = z.union([z.string(), z.array(assistantPartSchema)]).nullish();
const calledSchema = z.object({ name: z.string(), arguments: z.string() });
const customSchema = z.object({ name: z.string(), input: z.string() });

/** An assistant's message. Only its maker can verify its reasoning. */
const NO_PLACE = ["name", "audio", "reasoning", "reasoning_content"];

class MessageReader {
  readonly items: ResponseInputItem[] = [];
  readonly ignored: string[] = [];
  readonly #ids: AnswerIds;
  readonly #customCalls = new Set<string>();

  constructor(ids: AnswerIds) {
    this.#ids = ids;
  }

  read(message: JsonObject, path: string): void {
    const role = parseAt(roleSchema, message["role"], `${path}.role`);
    if (role === "tool") return this.#output(message, path);
    this.#ignore(message, path);
    if (role === "assistant") return this.#assistant(message, path);
    const content = toInputContent(message["content"], `${path}.content`);
    const rest = without(message, ["role", "content", "name"]);
    this.items.push({ ...rest, type: "message", role, content });
  }

  #ignore(message: JsonObject, path: string): void {
    const present = NO_PLACE.filter((name) => message[name] !== undefined && message[name] !== null);
    this.ignored.push(...present.map((name) => `${path}.${name}`));
  }

  #assistant(message: JsonObject, path: string): void {
    if (message["function_call"])
      throw refusal(`${path}.function_call`, `\`${path}.function_call\`: use \`tool_calls\`.`);
    const content = parseAt(assistantContentSchema, message["content"], `${path}.content`) ?? "";
    const parts = typeof content === "string" ? [{ type: "text" as const, text: content }] : content;
    const refusals = parts.flatMap((part) => (part.type === "refusal" ? [part.refusal] : []));
    const refused = parseAt(z.string().nullish(), message["refusal"], `${path}.refusal`);
    this.#words(
      parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join(""),
      refusals.join("") + (refused ?? ""),
    );
    const calls = message["tool_calls"] ?? [];
    for (const [index, call] of listAt(calls, `${path}.tool_calls`).entries()) {
      this.#call(objectAt(call, `${path}.tool_calls[${index}]`), `${path}.tool_calls[${index}]`);
    }
  }

  #words(text: string, refused: string): void {
    if (refused === "") {
      if (text !== "") this.items.push({ type: "message", role: "assistant", content: text });
      return;
    }
    const said = text === "" ? [] : [{ type: "output_text" as const, text, annotations: [] }];
    this.items.push({
      type: "message",
      role: "assistant",
      id: this.#ids.item("msg", this.items.length),
      status: "completed",
      content: [...said, { type: "refusal", refusal: refused }],
    });
  }

  #call(call: JsonObject, path: string): void {
    const call_id = textAt(call["id"], `${path}.id`);
    if (call["type"] === "custom") {
      const { name, input } = parseAt(customSchema, call["custom"], `${path}.custom`);
      this.#customCalls.add(call_id);
      this.items.push({ type: "custom_tool_call", call_id, name, input });
      return;
    }
    const { name, arguments: args } = parseAt(calledSchema, call["function"], `${path}.function`);
    this.items.push({ type: "function_call", call_id, name, arguments: args });
  }

  #output(message: JsonObject, path: string): void {
    const call_id = textAt(message["tool_call_id"], `${path}.tool_call_id`);
    const type = this.#customCalls.has(call_id) ? "custom_tool_call_output" : "function_call_output";
    this.items.push({
      type,
      call_id,
      output: toInputContent(message["content"], `${path}.content`),
    } as ResponseInputItem);
  }
}
