import { CHAT_FIELDS, type FieldRules, RESPONSES_FIELDS } from "./fields.ts";

/** The text of `docs/bridge.md`; a test compares the two. */
export function bridgeReference(): string {
  return [
    "# The bridge",
    "",
    "Generated from `packages/control-plane/src/inference/bridge/fields.ts` and `bridge-reference.ts` beside it.",
    "",
    "A call of `/v1/responses` works with an upstream that speaks only chat completions, and the other way round: the bridge converts",
    "request, answer and stream. Where the upstream speaks the dialect of the call, nothing is converted, and every byte goes on as it came.",
    "",
    "- **passed**: goes on under the same name, as submitted. So does every field that is not listed: an engine's own",
    "  (`chat_template_kwargs`, `top_k`) and those of the other dialect. Numbers stay exact, however long.",
    "- **converted**: goes on in the other dialect's form.",
    "- **refused**: 400 with `param`.",
    "- **ignored**: cannot be given, and the call is worth having without it; the answer's header `x-fairlead-ignored` names it.",
    "",
    "A field that is null, or asks for what is so anyway (`background: false`), is as good as absent.",
    "",
    "## `/v1/responses` to chat completions",
    "",
    ...fieldTable(RESPONSES_FIELDS),
    ...INPUT,
    "## `/v1/chat/completions` to responses",
    "",
    ...fieldTable(CHAT_FIELDS),
    ...MESSAGES,
    ...ANSWERS,
  ].join("\n");
}

function fieldTable(rules: FieldRules): string[] {
  const rows = Object.entries(rules)
    .toSorted(([a], [b]) => a.localeCompare(b))
    .map(([name, { fate, note }]) => `| \`${name}\` | ${fate} | ${note} |`);
  return ["| field | fate | as what, or why |", "| --- | --- | --- |", ...rows, ""];
}

const INPUT = [
  "| item of `input`, tool | fate | as what, or why |",
  "| --- | --- | --- |",
  "| message | converted | same role; `developer` becomes `system` and joins a system message before it, unless the provider knows the role |",
  "| `input_text`, `output_text`, `input_image`, `input_file`, `input_audio` | converted | `text`, `image_url`, `file`, same |",
  "| image by `file_id`, file by `file_url` | refused | chat completions take none, and nothing is downloaded here |",
  "| `function_call`, text and thoughts beside it | converted | one assistant message |",
  "| `function_call_output` | converted | a tool message; pictures and files follow in a user message |",
  "| output without its call before it | refused | no history is stored here |",
  "| `reasoning` | converted | `reasoning_content` where the provider takes it back, else left out |",
  "| `item_reference` | converted | the item that the same key was told within the last hour; refused where it is not known (any more): set `store: false` in the client |",
  "| items of hosted tools | ignored | their result is in the text that followed |",
  "| other items (`compaction`, …) | refused | they cannot be read |",
  "| tool `function` | converted | nested; `strict` stays as given, and absent where it is absent |",
  "| tool `custom` | converted | a function with one text `input`; its grammar is told in the description; the call comes back as `custom_tool_call` |",
  "| tool `namespace` | converted | `<namespace>__<name>`; the call comes back with both |",
  "| tools `web_search*`, `image_generation`, `tool_search` | ignored | coding agents always offer them; refused where `tool_choice` demands them |",
  "| other tools (`mcp`, `file_search`, `code_interpreter`, …) | refused | they run at a provider, and this one has none |",
  "",
];

const MESSAGES = [
  "| message, tool | fate | as what, or why |",
  "| --- | --- | --- |",
  "| system, developer, user | converted | a message of the same role |",
  "| assistant | converted | a message, then its calls; `name`, `audio` and thinking are left out |",
  "| tool | converted | `function_call_output` or `custom_tool_call_output` |",
  "| function | refused | use tool messages |",
  "| tool `function`, `custom` | converted | flat |",
  "",
];

const ANSWERS = [
  "## Answers and streams",
  "",
  "| chat completions | responses |",
  "| --- | --- |",
  "| `content`, `refusal` | a message, with a part for each |",
  "| `reasoning_content`, `reasoning` | a `reasoning` item, as its summary |",
  "| `tool_calls` | an item for each; `call_id` is the upstream's id, or a new one where that is missing or repeated |",
  "| `annotations` of type `url_citation`, `logprobs` | on the text; other annotations are left out |",
  "| `finish_reason` `stop`, `tool_calls` | `completed` |",
  "| `length`, `content_filter` | `incomplete`, its last item too |",
  "| no finish, an error | `failed`; in a stream an event `error`, then `response.failed` |",
  "| `usage` | the same counts; zero where the upstream told none |",
  "| other fields at the top (`timings`, …) | passed |",
  "",
  "Items of hosted tools have no place in a chat completion. A stream is told as it comes, and ends cleanly only where the upstream said that",
  "it had finished. An answer longer than 32 Mi characters or 1,024 items is broken off. Ids are derived from the request's: a stream and the",
  "whole answer to the same call name the same items.",
  "",
];
