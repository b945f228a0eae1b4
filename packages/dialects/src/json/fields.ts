import type { JsonObject } from "../convert/wire.ts";
import { refusal } from "./parse.ts";

/**
 * How each request field is handled. `docs/bridge.md` is generated from these tables.
 * - passed: sent unchanged, as are all fields that are not listed.
 * - converted: sent in the form of the other dialect.
 * - refused: 400 naming the field.
 * - ignored: cannot be sent, but the call is still useful; listed in the context's `ignored`.
 * A field that is null, or requests the default, counts as absent.
 */
type Fate = "passed" | "converted" | "refused" | "ignored";

export interface FieldRule {
  readonly fate: Fate;
  /** Converted: the other dialect's field. Refused and ignored: the reason. */
  readonly note: string;
  /** Refused and ignored: the value in effect. */
  readonly inEffect?: unknown;
}

export type FieldRules = Readonly<Record<string, FieldRule>>;

const ruleFor =
  (fate: Fate) =>
  (note: string, inEffect?: unknown): FieldRule => ({ fate, note, inEffect });
const passed = ruleFor("passed")("");
const converted = ruleFor("converted");
const refused = ruleFor("refused");
const ignored = ruleFor("ignored");

const SHARED: FieldRules = {
  temperature: passed,
  top_p: passed,
  presence_penalty: passed,
  frequency_penalty: passed,
  metadata: passed,
  user: passed,
  service_tier: passed,
  safety_identifier: passed,
  prompt_cache_key: passed,
  prompt_cache_retention: passed,
  prompt_cache_options: passed,
  moderation: passed,
};

/** `/v1/responses` for an upstream that supports chat completions. */
export const RESPONSES_FIELDS: FieldRules = {
  ...SHARED,
  model: converted("`model`, without its provider"),
  input: converted("`messages`"),
  instructions: converted("the first system message"),
  max_output_tokens: converted("`max_tokens` or `max_completion_tokens`, depending on the provider"),
  reasoning: converted("`effort` becomes `reasoning_effort`; the rest has no counterpart"),
  text: converted("`format` becomes `response_format`, `verbosity` keeps its name"),
  tools: converted("`tools`; see below"),
  tool_choice: converted("`tool_choice`; for `none` the tools are omitted too"),
  parallel_tool_calls: converted("same name; sent only with tools"),
  top_logprobs: converted("`logprobs` and `top_logprobs`"),
  include: converted("`message.output_text.logprobs` becomes `logprobs`; other values are not supported"),
  stream: converted("same name"),
  stream_options: converted("same name, with `include_usage`"),
  n: converted("only 1: responses have a single choice"),
  background: refused("converted calls cannot run in the background", false),
  conversation: refused("this host stores no conversations: send the history in `input`"),
  prompt: refused("this host stores no prompt templates: send the text in `input`"),
  previous_response_id: refused("this host stores no responses: send the history in `input`"),
  store: ignored(
    "this host stores no responses, and returns `store: false`. With false, items are not kept for references either",
    false,
  ),
  truncation: ignored(
    "input is not truncated, and if it is too long the upstream returns an error; the response has `disabled`",
    "disabled",
  ),
  max_tool_calls: ignored("it limits calls of hosted tools, which converted calls do not have"),
  context_management: ignored("input is not compacted, and if it is too long the upstream returns an error"),
};

/** `/v1/chat/completions` for an upstream that supports responses. */
export const CHAT_FIELDS: FieldRules = {
  ...SHARED,
  model: converted("`model`, without its provider"),
  messages: converted("`input`"),
  max_completion_tokens: converted("`max_output_tokens`"),
  max_tokens: converted("`max_output_tokens`, if `max_completion_tokens` is absent"),
  reasoning_effort: converted("`reasoning.effort`"),
  response_format: converted("`text.format`"),
  verbosity: converted("`text.verbosity`"),
  tools: converted("`tools`; `strict` defaults to false, as in this dialect"),
  tool_choice: converted("`tool_choice`"),
  parallel_tool_calls: passed,
  logprobs: converted("`include: message.output_text.logprobs`"),
  top_logprobs: converted("same name"),
  web_search_options: converted("the tool `web_search`"),
  store: converted("same name; defaults to false, as in this dialect"),
  stream: converted("same name"),
  stream_options: converted("same name, without `include_usage`, which the bridge handles itself"),
  n: converted("only 1: responses have a single choice"),
  modalities: converted("only text"),
  audio: refused("audio output is not supported by responses"),
  functions: refused("use `tools`"),
  function_call: refused("use `tool_choice`"),
};

export interface SplitFields {
  readonly passed: JsonObject;
  readonly converted: JsonObject;
  /** Names of ignored fields. */
  readonly ignored: readonly string[];
}

/** @throws DomainError `invalid_request` for a refused field. */
export function splitFields(body: JsonObject, rules: FieldRules): SplitFields {
  const ruled = Object.entries(body).map(([name, value]) => ({ name, value, rule: ruleOf(rules, name) }));
  const of = (fate: Fate) =>
    ruled.filter(({ rule, value }) => (rule?.fate ?? "passed") === fate && !(rule && isAbsent(rule, value)));
  for (const { name, rule } of of("refused")) {
    throw refusal(name, `\`${name}\` is not supported here: ${rule?.note}.`);
  }
  return {
    passed: Object.fromEntries(of("passed").map(({ name, value }) => [name, value])),
    converted: Object.fromEntries(of("converted").map(({ name, value }) => [name, value])),
    ignored: of("ignored").map(({ name }) => name),
  };
}

const ruleOf = (rules: FieldRules, name: string): FieldRule | undefined =>
  Object.hasOwn(rules, name) ? rules[name] : undefined;

const isAbsent = (rule: FieldRule, value: unknown): boolean =>
  value === null || value === undefined || (rule.inEffect !== undefined && value === rule.inEffect);
