import type { JsonObject, ResponseObject } from "../convert/wire.ts";
import { isObject } from "../json/parse.ts";

/** The response fields that echo the request; Open Responses requires all of them in every response object. */
export type ResponseEcho = Omit<
  ResponseObject,
  | "id"
  | "object"
  | "created_at"
  | "completed_at"
  | "status"
  | "model"
  | "output"
  | "error"
  | "incomplete_details"
  | "usage"
  | "service_tier"
>;

/** @param body the caller's request; missing or null fields get the value in effect. */
export function responseEcho(body: JsonObject): ResponseEcho {
  const given = (name: string, otherwise: unknown): unknown => body[name] ?? otherwise;
  const reasoning = isObject(body["reasoning"]) ? body["reasoning"] : {};
  const text = isObject(body["text"]) ? body["text"] : {};
  const echo = {
    instructions: given("instructions", null),
    tools: effectiveTools(body["tools"]),
    tool_choice: given("tool_choice", "auto"),
    parallel_tool_calls: given("parallel_tool_calls", true),
    temperature: given("temperature", 1),
    top_p: given("top_p", 1),
    presence_penalty: given("presence_penalty", 0),
    frequency_penalty: given("frequency_penalty", 0),
    top_logprobs: given("top_logprobs", 0),
    max_output_tokens: given("max_output_tokens", null),
    max_tool_calls: given("max_tool_calls", null),
    reasoning: { effort: reasoning["effort"] ?? null, summary: reasoning["summary"] ?? null },
    text: { ...text, format: text["format"] ?? { type: "text" } },
    metadata: given("metadata", {}),
    safety_identifier: given("safety_identifier", null),
    prompt_cache_key: given("prompt_cache_key", null),
    // Fixed by this host, whatever the request says.
    truncation: "disabled",
    previous_response_id: null,
    store: false,
    background: false,
  } satisfies Partial<Record<keyof ResponseEcho, unknown>>;
  // The values come from the caller's own request.
  return echo as unknown as ResponseEcho;
}

/** Drops tools that the model does not get; completes the others with the fields that Open Responses requires. */
function effectiveTools(tools: unknown): unknown[] {
  if (!Array.isArray(tools)) return [];
  return tools.flatMap((tool: unknown) => {
    if (!isObject(tool)) return [];
    const { type } = tool;
    if (type === "function") return [{ description: null, parameters: null, strict: null, ...tool }];
    return type === "custom" || type === "namespace" ? [tool] : [];
  });
}
