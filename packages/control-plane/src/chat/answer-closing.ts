import type { JsonObject } from "../inference/bridge/wire.ts";
import { type GrowingItem, viewItem, viewPart } from "./answer-items.ts";

/** The events that end items which their upstream has not finished, so that a reader sees every one of them whole. Pure. */
export function closingEvents(items: readonly GrowingItem[]): JsonObject[] {
  return items.flatMap((item) => [
    ...partsDone(item, "content"),
    ...partsDone(item, "summary"),
    ...callDone(item),
    { type: "response.output_item.done", output_index: item.index, item: viewItem(item) },
  ]);
}

/** By a part's type: the event that tells its text for the last time. */
const TEXT_DONE: Readonly<Record<string, string>> = {
  output_text: "response.output_text.done",
  refusal: "response.refusal.done",
  reasoning_text: "response.reasoning_text.done",
  summary_text: "response.reasoning_summary_text.done",
};

function partsDone(item: GrowingItem, list: "content" | "summary"): JsonObject[] {
  const partDone = list === "content" ? "response.content_part.done" : "response.reasoning_summary_part.done";
  return item[list].flatMap((part, at) => {
    if (part === undefined || part.closed) return [];
    const view = viewPart(part);
    const type = String(view["type"]);
    const place = { item_id: item.id, output_index: item.index, [`${list}_index`]: at };
    const logprobs = type === "output_text" ? { logprobs: [] } : {};
    return [
      { type: TEXT_DONE[type] ?? "response.output_text.done", ...place, [part.field]: part.text, ...logprobs },
      { type: partDone, ...place, part: view },
    ];
  });
}

function callDone({ item, id, index, args }: GrowingItem): JsonObject[] {
  const place = { item_id: id, output_index: index };
  if (item["type"] === "function_call") {
    return [{ type: "response.function_call_arguments.done", ...place, name: item["name"], arguments: args }];
  }
  if (item["type"] === "custom_tool_call") {
    return [{ type: "response.custom_tool_call_input.done", ...place, input: args }];
  }
  return [];
}
