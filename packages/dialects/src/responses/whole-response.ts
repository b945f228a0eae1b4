import { DomainError } from "@fairlead/protocol/errors";
import { noResponse } from "../calls/relayed-answer.ts";
import type { JsonObject } from "../convert/wire.ts";
import { DONE_FRAME } from "../events/sse.ts";
import { isObject } from "../json/parse.ts";

/** A response that is known whole as the events of its stream. Pure. */

/** @returns whole frames, `[DONE]` included. @throws DomainError `upstream_failed` for what is no response. */
export function responseAsStream(response: JsonObject): string {
  const { status, output } = response;
  if (!Array.isArray(output)) throw noResponse("returned JSON that is not a response");
  if (status === "failed") throw new DomainError("upstream_failed", "did not finish its response");
  const frames = responseEvents(response).map(
    (event) => `event: ${String(event["type"])}\ndata: ${JSON.stringify(event)}\n\n`,
  );
  return frames.join("") + DONE_FRAME;
}

/** Every event of a response's stream, numbered. */
export function responseEvents(response: JsonObject): JsonObject[] {
  const begun = { ...response, status: "in_progress", output: [], usage: null, completed_at: null };
  const output: unknown[] = Array.isArray(response["output"]) ? response["output"] : [];
  const isWhole = response["status"] === "completed";
  return [
    { type: "response.created", response: begun },
    { type: "response.in_progress", response: begun },
    ...output.filter(isObject).flatMap(itemEvents),
    { type: isWhole ? "response.completed" : "response.incomplete", response },
  ].map((event, index) => ({ ...event, sequence_number: index }));
}

function itemEvents(item: JsonObject, output_index: number): JsonObject[] {
  const place = { item_id: item["id"], output_index };
  const { content, summary, arguments: args, input } = item;
  const isCall = typeof args === "string" || typeof input === "string";
  const empty = {
    ...(Array.isArray(content) ? { content: [] } : {}),
    ...(Array.isArray(summary) ? { summary: [] } : {}),
    ...(typeof args === "string" ? { arguments: "" } : {}),
    ...(typeof input === "string" ? { input: "" } : {}),
  };
  return [
    { type: "response.output_item.added", output_index, item: { ...item, ...empty, status: "in_progress" } },
    ...partsEvents(summary, "summary_index", place),
    ...partsEvents(content, "content_index", place),
    ...(isCall ? callEvents(item, place) : []),
    { type: "response.output_item.done", output_index, item },
  ];
}

/** By a part's type: the names of its events, and the field that grows. */
const PARTS: Readonly<Record<string, { readonly part: string; readonly text: string; readonly field: string }>> = {
  output_text: { part: "response.content_part", text: "response.output_text", field: "text" },
  refusal: { part: "response.content_part", text: "response.refusal", field: "refusal" },
  reasoning_text: { part: "response.content_part", text: "response.reasoning_text", field: "text" },
  summary_text: {
    part: "response.reasoning_summary_part",
    text: "response.reasoning_summary_text",
    field: "text",
  },
};

function partsEvents(parts: unknown, indexName: string, itemPlace: JsonObject): JsonObject[] {
  if (!Array.isArray(parts)) return [];
  return parts.filter(isObject).flatMap((part, index) => {
    const names = PARTS[String(part["type"])];
    if (names === undefined) return [];
    const place = { ...itemPlace, [indexName]: index };
    const text = part[names.field];
    const logprobs = names.text === "response.output_text" ? { logprobs: [] } : {};
    return [
      { type: `${names.part}.added`, ...place, part: { ...part, [names.field]: "" } },
      { type: `${names.text}.delta`, ...place, delta: text, ...logprobs },
      { type: `${names.text}.done`, ...place, [names.field]: text, ...logprobs },
      { type: `${names.part}.done`, ...place, part },
    ];
  });
}

function callEvents({ type, name, arguments: args, input }: JsonObject, place: JsonObject): JsonObject[] {
  if (type === "custom_tool_call") {
    return [
      { type: "response.custom_tool_call_input.delta", ...place, delta: input },
      { type: "response.custom_tool_call_input.done", ...place, input },
    ];
  }
  return [
    { type: "response.function_call_arguments.delta", ...place, delta: args },
    { type: "response.function_call_arguments.done", ...place, name, arguments: args },
  ];
}
