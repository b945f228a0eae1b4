import { DomainError } from "@fairlead/protocol/errors";
import { z } from "zod";
import { MessageList } from "../../chat/message-list.ts";
import type { ToolNames } from "../../chat/tool-names.ts";
import { isObject, listAt, objectAt, parseAt, refusal, textAt, without } from "../../json/parse.ts";
import type { ChatQuirks } from "../bridge-call.ts";
import type { ChatMessageParam, JsonObject } from "../wire.ts";
import { toChatContent } from "./responses-content-to-chat.ts";

interface Setting {
  readonly quirks: ChatQuirks;
  readonly names: ToolNames;
}

interface Messages {
  readonly messages: readonly ChatMessageParam[];
  /** Paths of ignored items. */
  readonly ignored: readonly string[];
}

/** Earlier calls of hosted tools, which chat completions cannot express. Their result is in the following text. */
const HOSTED =
  /^(web_search_call|file_search_call|code_interpreter_call|image_generation_call|mcp_list_tools|mcp_approval_request|mcp_approval_response|mcp_call|tool_search_call|tool_search_output|computer_call|computer_call_output|local_shell_call|local_shell_call_output|shell_call|shell_call_output|apply_patch_call|apply_patch_call_output|program|program_output)$/;

/** Converts `input` and `instructions` of `/v1/responses` to messages. @throws DomainError `invalid_request` naming the item. */
export function toMessages(source: JsonObject, setting: Setting): Messages {
  const list = new MessageList(setting.quirks);
  const { instructions, input } = source;
  if (typeof instructions === "string" && instructions !== "") list.system("system", instructions);
  if (typeof input === "string") {
    list.user(input, {});
    return { messages: list.finish(), ignored: [] };
  }
  const reader = new InputReader(list, setting.names);
  const items = [
    ...(Array.isArray(instructions) ? each(instructions, "instructions") : []),
    ...each(listAt(input, "input"), "input"),
  ];
  for (const [item, path] of items) reader.read(item, path);
  const messages = list.finish();
  if (messages.length === 0) throw refusal("input", "`input` contains no message.");
  return { messages, ignored: reader.ignored };
}

const each = (items: readonly unknown[], path: string): [JsonObject, string][] =>
  items.map((item, index) => [objectAt(item, `${path}[${index}]`), `${path}[${index}]`]);

const roleSchema = z.enum(["user", "assistant", "system", "developer"]);
const outputPartSchema = z.union([
  z.object({ type: z.enum(["output_text", "input_text", "text"]), text: z.string() }),
  z.object({ type: z.literal("refusal"), refusal: z.string() }),
]);
const thoughtSchema = z.object({
  summary: z.array(z.object({ text: z.string() })).nullish(),
  content: z.array(z.object({ text: z.string() })).nullish(),
});

type Role = z.infer<typeof roleSchema>;
const ROLES: ReadonlySet<unknown> = new Set(roleSchema.options);

/** Most of a long history is messages of plain text: their schemas are asked only where something is wrong. */
const roleAt = (role: unknown, path: string): Role =>
  ROLES.has(role) ? (role as Role) : parseAt(roleSchema, role, path);

const isOutputText = (part: unknown): part is { readonly type: "output_text"; readonly text: string } =>
  isObject(part) && part["type"] === "output_text" && typeof part["text"] === "string";

class InputReader {
  readonly ignored: string[] = [];
  readonly #list: MessageList;
  readonly #names: ToolNames;
  readonly #calls = new Set<string>();

  constructor(list: MessageList, names: ToolNames) {
    this.#list = list;
    this.#names = names;
  }

  read(item: JsonObject, path: string): void {
    // Most clients omit the type of a message.
    const type =
      item["type"] === undefined && item["role"] !== undefined ? "message" : textAt(item["type"], `${path}.type`);
    switch (type) {
      case "message":
        return this.#message(item, path);
      case "reasoning":
        return this.#thought(item);
      case "function_call":
        return this.#call(item, path, textAt(item["arguments"], `${path}.arguments`));
      case "custom_tool_call":
        return this.#call(item, path, JSON.stringify({ input: textAt(item["input"], `${path}.input`) }));
      case "function_call_output":
      case "custom_tool_call_output":
        return this.#output(item, path);
      case "item_reference":
        throw referenceRefusal(item, path);
      default:
        if (!HOSTED.test(type))
          throw refusal(path, `\`${path}\`: items of type \`${type}\` are not supported with this model.`);
        this.ignored.push(path);
    }
  }

  #message(item: JsonObject, path: string): void {
    const role = roleAt(item["role"], `${path}.role`);
    if (role === "assistant") return this.#assistant(item["content"], `${path}.content`);
    const content = toChatContent(item["content"], `${path}.content`);
    if (role !== "user") return this.#list.system(role, content);
    this.#list.user(content, without(item, ["type", "role", "content", "id", "status", "phase"]));
  }

  #assistant(content: unknown, path: string): void {
    if (typeof content === "string") return this.#list.assistant(content === "" ? [] : [content], []);
    const texts: string[] = [];
    const refusals: string[] = [];
    for (const [index, given] of listAt(content, path).entries()) {
      const part = isOutputText(given) ? given : parseAt(outputPartSchema, given, `${path}[${index}]`);
      if (part.type === "refusal") refusals.push(part.refusal);
      else if (part.text !== "") texts.push(part.text);
    }
    this.#list.assistant(texts, refusals);
  }

  /** It may contain only data encrypted by its maker, which is not an error. */
  #thought(item: JsonObject): void {
    const { data } = thoughtSchema.safeParse(item);
    const parts = data?.content?.length ? data.content : (data?.summary ?? []);
    this.#list.thought(parts.map(({ text }) => text).join("\n\n"));
  }

  #call(item: JsonObject, path: string, args: string): void {
    const id = textAt(item["call_id"], `${path}.call_id`);
    const namespace = parseAt(z.string().nullish(), item["namespace"], `${path}.namespace`) ?? null;
    this.#calls.add(id);
    this.#list.call(id, this.#names.chatName(namespace, textAt(item["name"], `${path}.name`)), args);
  }

  #output(item: JsonObject, path: string): void {
    const id = textAt(item["call_id"], `${path}.call_id`);
    if (!this.#calls.has(id)) {
      const message = `\`${path}.call_id\`: there is no preceding call with this ID in \`input\`. Send the call as well, because no history is stored here.`;
      throw refusal(`${path}.call_id`, message);
    }
    this.#list.output(id, toChatContent(item["output"], `${path}.output`));
  }
}

function referenceRefusal(item: JsonObject, path: string): DomainError {
  const id = typeof item["id"] === "string" ? ` \`${item["id"].slice(0, 100)}\`` : "";
  const message = `\`${path}\` refers to the item${id}, which is not known here. Items are remembered for at most an hour. Send complete items: set \`store: false\` in the client.`;
  return new DomainError("invalid_request", message, { param: path });
}
