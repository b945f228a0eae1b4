import { CHAT_FIELDS, type FieldRules, RESPONSES_FIELDS } from "../json/fields.ts";

/** The text of `docs/bridge.md`; a test compares the two. */
export function bridgeReference(): string {
  return [
    "# The bridge",
    "",
    "Generated from `packages/dialects/src/json/fields.ts` and `bridge-reference.ts`.",
    "",
    "A call of `/v1/responses` works with an upstream that only supports chat completions, and vice versa: the bridge converts requests,",
    "responses and streams. If the upstream supports the dialect of the call, nothing is converted and all bytes are forwarded unchanged.",
    "",
    "- **passed**: forwarded unchanged, as are all fields that are not listed: those of an engine (`chat_template_kwargs`, `top_k`) and those of",
    "  the other dialect. Numbers keep their precision.",
    "- **converted**: forwarded in the form of the other dialect.",
    "- **refused**: 400 with `param`.",
    "- **ignored**: not supported, but the call can do without it. The response header `x-fairlead-ignored` lists it.",
    "",
    "A field that is null or has its default value (`background: false`) is treated as absent. The response names the model as",
    "`<provider>/<model>`, whatever the upstream calls it.",
    "",
    "## `/v1/responses` to Chat Completions",
    "",
    ...fieldTable(RESPONSES_FIELDS),
    ...INPUT,
    "## `/v1/chat/completions` to Responses",
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
  return ["| field | handling | converted to, or reason |", "| --- | --- | --- |", ...rows, ""];
}

const INPUT = [
  "| item of `input`, tool | handling | converted to, or reason |",
  "| --- | --- | --- |",
  "| message | converted | same role; `developer` becomes `system` and is merged with a preceding system message, unless the provider supports the role |",
  "| `input_text`, `output_text`, `input_image`, `input_file`, `input_audio` | converted | `text`, `image_url`, `file`, same |",
  "| image by `file_id`, file by `file_url` | refused | not supported by chat completions, and Fairlead does not download files |",
  "| `function_call`, with its text and reasoning | converted | one assistant message |",
  "| `function_call_output` | converted | a tool message; images and files follow in a user message |",
  "| output without its call before it | refused | this host stores no history |",
  "| `reasoning` | converted | `reasoning_content` if the provider accepts it, otherwise omitted |",
  "| `item_reference` | converted | the item, if the same key received it within the last hour; otherwise refused: set `store: false` in the client |",
  "| items of hosted tools | ignored | their results are in the text that follows |",
  "| other items (`compaction`, …) | refused | not supported |",
  "| tool `function` | converted | nested; `strict` is unchanged |",
  "| tool `custom` | converted | a function with one text `input` and the grammar in its description; its calls are returned as `custom_tool_call` |",
  "| tool `namespace` | converted | `<namespace>__<name>`; its calls are returned with both |",
  "| tools `web_search*`, `image_generation`, `tool_search` | ignored | coding agents always offer them; refused if `tool_choice` requires them |",
  "| other tools (`mcp`, `file_search`, `code_interpreter`, …) | refused | they run at the provider, which does not support them |",
  "",
];

const MESSAGES = [
  "| message, tool | handling | converted to, or reason |",
  "| --- | --- | --- |",
  "| system, developer, user | converted | a message of the same role |",
  "| assistant | converted | a message, then its calls; `name`, `audio` and reasoning are omitted |",
  "| tool | converted | `function_call_output` or `custom_tool_call_output` |",
  "| function | refused | use tool messages |",
  "| tool `function`, `custom` | converted | flat |",
  "",
];

const ANSWERS = [
  "## Responses and streams",
  "",
  "| Chat Completions | Responses |",
  "| --- | --- |",
  "| `content`, `refusal` | a message with a part for each |",
  "| `reasoning_content`, `reasoning` | a `reasoning` item, as its summary |",
  "| `tool_calls` | an item for each; `call_id` is the upstream's ID, or a new one if that is missing or duplicate |",
  "| `annotations` of type `url_citation`, `logprobs` | on the text; other annotations are omitted |",
  "| `finish_reason` `stop`, `tool_calls` | `completed` |",
  "| `length`, `content_filter` | `incomplete`, also for the last item |",
  "| no finish reason, an error | `failed`; in a stream an event `error`, then `response.failed` |",
  "| `usage` | the same counts; zero if the upstream reports none |",
  "| other top-level fields (`timings`, …) | passed |",
  "",
  "Chat completions cannot contain items of hosted tools, which are omitted. Streams are converted event by event, and end cleanly only if the",
  "upstream reports that it has finished. A response longer than 32 Mi characters or 1,024 items is aborted. Item IDs are derived from the request's",
  "ID, so a stream and a complete response to the same call have the same ones.",
  "",
];
