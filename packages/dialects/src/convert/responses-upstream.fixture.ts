/** Items and events of a responses upstream, as tests tell them. */

export const USAGE = {
  input_tokens: 11,
  input_tokens_details: { cached_tokens: 5 },
  output_tokens: 7,
  output_tokens_details: { reasoning_tokens: 3 },
  total_tokens: 18,
};
export const message = (text: string, rest: object = {}) => ({
  type: "message",
  id: "msg_1",
  role: "assistant",
  status: "completed",
  content: [{ type: "output_text", text, annotations: [], logprobs: [], ...rest }],
});
export const thought = (text: string) => ({ type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text }] });
export const called = (id: string, args: string) => ({
  type: "function_call",
  id: `fc_${id}`,
  call_id: id,
  name: "look",
  arguments: args,
});
export const patched = { type: "custom_tool_call", id: "ctc_1", call_id: "p", name: "patch", input: "***" };

export const created = {
  type: "response.created",
  response: { id: "resp_1", model: "big", status: "in_progress", output: [] },
};
export const completed = (output: readonly unknown[], rest: object = {}) => ({
  type: "response.completed",
  response: { id: "resp_1", model: "big", status: "completed", output, usage: USAGE, ...rest },
});
export const added = (output_index: number, item: object) => ({
  type: "response.output_item.added",
  output_index,
  item,
});
/** A delta of the item at an index; of text, unless `type` says otherwise. */
export const delta = (output_index: number, text: string, type = "output_text") => ({
  type: `response.${type}.delta`,
  output_index,
  content_index: 0,
  delta: text,
});
