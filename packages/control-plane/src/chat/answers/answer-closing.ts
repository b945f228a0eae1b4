import type { JsonObject } from "@fairlead/dialects/convert/wire";
import { type GrowingItem, type GrowingPart, viewItem, viewPart } from "./answer-items.ts";

/** Events that complete items which the upstream left unfinished, so that clients see each of them complete. Pure. */
export function closingEvents(items: readonly GrowingItem[]): JsonObject[] {
  return items.flatMap((item) => [
    ...partsDone(item, "content"),
    ...partsDone(item, "summary"),
    ...callDone(item),
    { type: "response.output_item.done", output_index: item.index, item: viewItem(item) },
  ]);
}

/** Events with a part's text, by part type. */
const TEXT_EVENTS: Readonly<Record<string, string>> = {
  output_text: "response.output_text",
  refusal: "response.refusal",
  reasoning_text: "response.reasoning_text",
  summary_text: "response.reasoning_summary_text",
};

function partsDone(item: GrowingItem, list: "content" | "summary"): JsonObject[] {
  const partDone = list === "content" ? "response.content_part.done" : "response.reasoning_summary_part.done";
  return item[list].flatMap((part, at) => {
    if (part === undefined || part.closed) return [];
    const view = viewPart(part);
    const place = { item_id: item.id, output_index: item.index, [`${list}_index`]: at };
    return [...textDone(part, { type: String(view["type"]), place }), { type: partDone, ...place, part: view }];
  });
}

function textDone(
  { told, text, field }: GrowingPart,
  { type, place }: { readonly type: string; readonly place: JsonObject },
): JsonObject[] {
  if (told) return [];
  const name = TEXT_EVENTS[type] ?? "response.output_text";
  const logprobs = type === "output_text" ? { logprobs: [] } : {};
  // Some clients ignore text without a delta.
  const empty = text === "" ? [{ type: `${name}.delta`, ...place, delta: "", ...logprobs }] : [];
  return [...empty, { type: `${name}.done`, ...place, [field]: text, ...logprobs }];
}

function callDone({ item, id, index, args, argsTold }: GrowingItem): JsonObject[] {
  const place = { item_id: id, output_index: index };
  if (argsTold) return [];
  if (item["type"] === "function_call") {
    return [{ type: "response.function_call_arguments.done", ...place, name: item["name"], arguments: args }];
  }
  if (item["type"] === "custom_tool_call") {
    return [{ type: "response.custom_tool_call_input.done", ...place, input: args }];
  }
  return [];
}
