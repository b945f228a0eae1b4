import type { ResponseCreateParamsBase, Tool } from "openai/resources/responses/responses";
import { z } from "zod";
import { listAt, objectAt, parseAt, refusal, textAt, without } from "../../json/parse.ts";
import type { JsonObject } from "../wire.ts";

/** Tools and the choice among them, from chat completions to `/v1/responses`: what is nested there is flat here. */

type Fields = Pick<ResponseCreateParamsBase, "tools" | "tool_choice">;

export function toResponsesTools(source: JsonObject): Fields {
  const given = source["tools"] === undefined ? [] : listAt(source["tools"], "tools");
  const tools = given.map((each, index) => toTool(objectAt(each, `tools[${index}]`), `tools[${index}]`));
  const search = source["web_search_options"];
  if (search !== undefined) tools.push(toWebSearch(objectAt(search, "web_search_options")));
  const choice = source["tool_choice"];
  return {
    ...(tools.length > 0 ? { tools } : {}),
    ...(choice === undefined ? {} : { tool_choice: toChoice(choice) as NonNullable<Fields["tool_choice"]> }),
  };
}

function toTool(tool: JsonObject, path: string): Tool {
  const type = textAt(tool["type"], `${path}.type`);
  if (type === "function") {
    const definition = objectAt(tool["function"], `${path}.function`);
    const { name, parameters, strict } = definition;
    return {
      ...definition,
      type,
      name: textAt(name, `${path}.function.name`),
      parameters: (parameters ?? NO_PARAMETERS) as Record<string, unknown>,
      // The responses dialect tries to be strict where nothing is said, and changes the schema for it.
      strict: parseAt(z.boolean().nullish(), strict, `${path}.function.strict`) ?? false,
    };
  }
  if (type !== "custom") throw refusal(`${path}.type`, `\`${path}.type\`: must be function or custom.`);
  const { format, ...rest } = objectAt(tool["custom"], `${path}.custom`);
  const name = textAt(rest["name"], `${path}.custom.name`);
  return {
    ...rest,
    type,
    name,
    ...(format === undefined ? {} : { format: toFormat(format, `${path}.custom.format`) }),
  };
}

const NO_PARAMETERS = { type: "object", properties: {} };

const formatSchema = z.union([
  z.object({ type: z.literal("text") }),
  z.object({
    type: z.literal("grammar"),
    grammar: z.object({ syntax: z.enum(["lark", "regex"]), definition: z.string() }),
  }),
]);

function toFormat(format: unknown, path: string) {
  const parsed = parseAt(formatSchema, format, path);
  return parsed.type === "text" ? parsed : { type: parsed.type, ...parsed.grammar };
}

function toWebSearch(options: JsonObject): Tool {
  const { user_location: location, ...rest } = options;
  const nested = z.object({ approximate: z.record(z.string(), z.unknown()) }).safeParse(location);
  const flat = nested.success ? { user_location: { type: "approximate", ...nested.data.approximate } } : {};
  return { ...rest, ...flat, type: "web_search" } as Tool;
}

const choiceSchema = z.union([z.string(), z.looseObject({ type: z.string() })]);
const allowedSchema = z.object({ mode: z.string(), tools: z.array(z.looseObject({ type: z.string() })) });

function toChoice(value: unknown): unknown {
  const choice = parseAt(choiceSchema, value, "tool_choice");
  if (typeof choice === "string") return choice;
  if (choice.type !== "allowed_tools") return toNamed(choice, "tool_choice");
  const { mode, tools } = parseAt(allowedSchema, choice["allowed_tools"], "tool_choice.allowed_tools");
  const path = "tool_choice.allowed_tools.tools";
  return { type: choice.type, mode, tools: tools.map((tool, index) => toNamed(tool, `${path}[${index}]`)) };
}

function toNamed(choice: JsonObject, path: string): JsonObject {
  const type = textAt(choice["type"], `${path}.type`);
  if (type !== "function" && type !== "custom") throw refusal(path, `\`${path}.type\`: must be function or custom.`);
  const { name } = objectAt(choice[type], `${path}.${type}`);
  return { ...without(choice, [type]), type, name: textAt(name, `${path}.${type}.name`) };
}
