import { refusal } from "./parse.ts";
import type { JsonObject } from "./wire.ts";

/**
 * What becomes of each field of a request. `docs/bridge.md` is generated from these tables, and the conversion obeys them:
 *
 * - passed: goes on under the same name, with the value as submitted; so does every field that stands in no table.
 * - converted: goes on in the other dialect's form.
 * - refused: 400 naming the field.
 * - ignored: the bridge cannot give it, and the call is worth having without it; the context names it in `ignored`.
 *
 * A field that is null, or asks for what is so anyway, is as good as absent.
 */
type Fate = "passed" | "converted" | "refused" | "ignored";

export interface FieldRule {
  readonly fate: Fate;
  /** Converted: the other dialect's field. Refused and ignored: why, in words for the caller. */
  readonly note: string;
  /** Refused and ignored: the value that is in effect anyway. */
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

/** `/v1/responses` for an upstream that speaks chat completions. */
export const RESPONSES_FIELDS: FieldRules = {
  ...SHARED,
  model: converted("`model`, without its provider"),
  input: converted("`messages`"),
  instructions: converted("the first system message"),
  max_output_tokens: converted("`max_tokens` or `max_completion_tokens`, as the provider has it"),
  reasoning: converted("`effort` becomes `reasoning_effort`; the rest has no counterpart"),
  text: converted("`format` becomes `response_format`, `verbosity` keeps its name"),
  tools: converted("`tools`; see below"),
  tool_choice: converted("`tool_choice`; for `none` the tools are left out too"),
  parallel_tool_calls: converted("same name; sent only beside tools"),
  top_logprobs: converted("`logprobs` and `top_logprobs`"),
  include: converted("`message.output_text.logprobs` becomes `logprobs`; the rest cannot be given"),
  stream: converted("same name"),
  stream_options: converted("same name, with `include_usage`"),
  n: converted("only 1: a response has one answer"),
  background: refused("a bridged call is answered while the caller waits", false),
  conversation: refused("this host stores no conversations: send the history in `input`"),
  prompt: refused("this host stores no prompt templates: send the text in `input`"),
  previous_response_id: refused("this host stores no responses: send the history in `input`"),
  store: ignored(
    "this host stores no responses; the answer says `store: false`. With false, nothing is remembered for references either",
    false,
  ),
  truncation: ignored(
    "nothing is cut; what is too long is the upstream's error; the answer says `disabled`",
    "disabled",
  ),
  max_tool_calls: ignored("it counts calls of hosted tools, and a bridged answer has none"),
  context_management: ignored("nothing is compacted; what is too long is the upstream's error"),
};

/** `/v1/chat/completions` for an upstream that speaks responses. */
export const CHAT_FIELDS: FieldRules = {
  ...SHARED,
  model: converted("`model`, without its provider"),
  messages: converted("`input`"),
  max_completion_tokens: converted("`max_output_tokens`"),
  max_tokens: converted("`max_output_tokens`, where `max_completion_tokens` is absent"),
  reasoning_effort: converted("`reasoning.effort`"),
  response_format: converted("`text.format`"),
  verbosity: converted("`text.verbosity`"),
  tools: converted("`tools`; `strict` is false where it is absent, as this dialect has it"),
  tool_choice: converted("`tool_choice`"),
  parallel_tool_calls: passed,
  logprobs: converted("`include: message.output_text.logprobs`"),
  top_logprobs: converted("same name"),
  web_search_options: converted("the tool `web_search`"),
  store: converted("same name; false where it is absent, as this dialect has it"),
  stream: converted("same name"),
  stream_options: converted("same name, without `include_usage`: the bridge answers that itself"),
  n: converted("only 1: a response has one answer"),
  modalities: converted("only text"),
  audio: refused("a response cannot speak"),
  functions: refused("use `tools`"),
  function_call: refused("use `tool_choice`"),
};

export interface SplitFields {
  readonly passed: JsonObject;
  readonly converted: JsonObject;
  /** Names of the fields that stay without effect. */
  readonly ignored: readonly string[];
}

/** @throws DomainError `invalid_request` for a field that is refused. */
export function splitFields(body: JsonObject, rules: FieldRules): SplitFields {
  const ruled = Object.entries(body).map(([name, value]) => ({ name, value, rule: ruleOf(rules, name) }));
  const of = (fate: Fate) =>
    ruled.filter(({ rule, value }) => (rule?.fate ?? "passed") === fate && !(rule && isAbsent(rule, value)));
  for (const { name, rule } of of("refused")) {
    throw refusal(name, `\`${name}\` cannot be given here: ${rule?.note}.`);
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
