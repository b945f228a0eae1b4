import type {
  ChatCompletionAllowedTools,
  ChatCompletionTool,
  ChatCompletionToolChoiceOption,
} from "openai/resources/chat/completions/completions";
import { z } from "zod";
import { ToolNames, type ToolOrigin } from "../../chat/tool-names.ts";
import { listAt, objectAt, parseAt, refusal, textAt, without } from "../../json/parse.ts";
import type { JsonObject } from "../wire.ts";

/** Converts tools and `tool_choice` from `/v1/responses` to chat completions. */
export interface ChatTools {
  readonly fields: {
    readonly tools?: ChatCompletionTool[];
    readonly tool_choice?: ChatCompletionToolChoiceOption;
    readonly parallel_tool_calls?: boolean;
  };
  readonly names: ToolNames;
  /** Paths of ignored tools. */
  readonly ignored: readonly string[];
}

interface Offer {
  readonly origin: ToolOrigin;
  readonly tool: ChatCompletionTool;
}

/** Hosted tools that coding agents always send; rejecting them would lock those agents out. */
const LEFT_OUT = /^(web_search|image_generation|tool_search)/;

/** Fields that only the responses dialect has. */
const RESPONSES_ONLY = ["type", "name", "description", "parameters", "strict", "allowed_callers", "defer_loading"];

/** @throws DomainError `invalid_request` for tools that chat completions cannot express. */
export function toChatTools(source: JsonObject): ChatTools {
  const tools = source["tools"] === undefined ? [] : listAt(source["tools"], "tools");
  const names = new ToolNames();
  const ignored: string[] = [];
  const found = tools.flatMap((each, index) => {
    const tool = objectAt(each, `tools[${index}]`);
    const type = textAt(tool["type"], `tools[${index}].type`);
    if (LEFT_OUT.test(type)) ignored.push(`tools[${index}]`);
    return LEFT_OUT.test(type) ? [] : declarations(tool, { path: `tools[${index}]`, namespace: null });
  });
  const plainFirst = found.toSorted((a, b) => Number(a.namespace !== null) - Number(b.namespace !== null));
  const chatNames = new Map(plainFirst.map((each) => [each, names.add(each)]));
  const offers = found.map((each) => ({ origin: each, tool: toChatTool(each, chatNames.get(each) ?? each.name) }));
  const parallel = source["parallel_tool_calls"];
  const fields = withChoice(offers, source["tool_choice"], names);
  if (!fields.tools || parallel === undefined) return { fields, names, ignored };
  const parallel_tool_calls = parseAt(z.boolean(), parallel, "parallel_tool_calls");
  return { fields: { ...fields, parallel_tool_calls }, names, ignored };
}

interface Declaration extends ToolOrigin {
  readonly declared: JsonObject;
}

interface Spot {
  readonly path: string;
  readonly namespace: string | null;
}

function declarations(tool: JsonObject, { path, namespace }: Spot): Declaration[] {
  const type = textAt(tool["type"], `${path}.type`);
  if (type === "function" || type === "custom") {
    return [{ kind: type, name: textAt(tool["name"], `${path}.name`), namespace, declared: tool }];
  }
  if (type !== "namespace" || namespace !== null) {
    throw refusal(
      path,
      `\`${path}\`: tools of type \`${type}\` run at the provider, and the provider of this model does not have them.`,
    );
  }
  const inside = textAt(tool["name"], `${path}.name`);
  return listAt(tool["tools"], `${path}.tools`).flatMap((each, index) => {
    const spot = { path: `${path}.tools[${index}]`, namespace: inside };
    return declarations(objectAt(each, spot.path), spot);
  });
}

function toChatTool({ kind, declared }: Declaration, name: string): ChatCompletionTool {
  const { description, parameters, strict } = declared;
  if (kind === "custom") return customAsFunction(declared, name);
  const definition = {
    ...without(declared, RESPONSES_ONLY),
    name,
    // Engines reject null, and the dialects have different defaults for an absent `strict`.
    ...(typeof description === "string" ? { description } : {}),
    ...(parameters === null || parameters === undefined ? {} : { parameters: parameters as Record<string, unknown> }),
    ...(typeof strict === "boolean" ? { strict } : {}),
  };
  return { type: "function", function: definition };
}

/** Engines have no free-form tools: the text becomes the only argument of a function, and `custom-tool-input.ts` reads it back. */
function customAsFunction(declared: JsonObject, name: string): ChatCompletionTool {
  const { description, format } = declared;
  const input = { type: "string", description: inputDescription(format) };
  return {
    type: "function",
    function: {
      name,
      ...(typeof description === "string" ? { description } : {}),
      parameters: { type: "object", properties: { input }, required: ["input"], additionalProperties: false },
    },
  };
}

function inputDescription(format: unknown): string {
  const grammar = z
    .object({ type: z.literal("grammar"), syntax: z.string(), definition: z.string() })
    .safeParse(format);
  if (!grammar.success) return "The complete input of the tool, as plain text.";
  const { syntax, definition } = grammar.data;
  return `The complete input of the tool, as plain text. It must match this ${syntax} grammar:\n${definition}`;
}

const choiceSchema = z.union([z.enum(["none", "auto", "required"]), z.looseObject({ type: z.string() })]);

function withChoice(offers: readonly Offer[], value: unknown, names: ToolNames): ChatTools["fields"] {
  const choice = value === undefined ? undefined : parseAt(choiceSchema, value, "tool_choice");
  // Some engines ignore `none`; without tools there is nothing to choose.
  if (choice === "none") return {};
  if (typeof choice === "object" && choice.type === "allowed_tools") return allowed(offers, choice);
  const tools = offers.map(({ tool }) => tool);
  if (typeof choice === "object") return { tools, tool_choice: named(choice, names) };
  if (tools.length === 0) {
    if (choice === "required")
      throw refusal("tool_choice", "`tool_choice` requires a tool, but no supported tool is available.");
    return {};
  }
  return { tools, ...(choice === undefined ? {} : { tool_choice: choice }) };
}

function named(choice: JsonObject, names: ToolNames): ChatCompletionToolChoiceOption {
  const { type } = choice;
  if (type !== "function" && type !== "custom") {
    throw refusal(
      "tool_choice",
      `\`tool_choice\`: tools of type \`${String(type)}\` are not supported with this model.`,
    );
  }
  const name = textAt(choice["name"], "tool_choice.name");
  if (!names.has(type, name)) throw refusal("tool_choice", `\`tool_choice\` names a tool that is not in \`tools\`.`);
  return { type: "function", function: { name } };
}

const allowedSchema = z.object({
  mode: z.enum(["auto", "required"]),
  tools: z.array(z.looseObject({ type: z.string() })),
});

/** Few engines support the list, so the tools are filtered instead. */
function allowed(offers: readonly Offer[], choice: JsonObject): ChatTools["fields"] {
  const { mode, tools: listed } = parseAt(allowedSchema, choice, "tool_choice");
  const tools = offers
    .filter(({ origin }) => listed.some(({ type, ...rest }) => type === origin.kind && rest["name"] === origin.name))
    .map(({ tool }) => tool);
  if (tools.length > 0) return { tools, tool_choice: mode satisfies ChatCompletionAllowedTools["mode"] };
  if (mode === "required")
    throw refusal("tool_choice", "`tool_choice` requires one of several tools, but none of them is supported.");
  return {};
}
