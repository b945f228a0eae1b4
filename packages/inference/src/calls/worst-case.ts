import { type CallCounts, type CountField, choicesOf } from "@fairlead/dialects/calls/call-counts";
import type { CallScan } from "@fairlead/dialects/calls/call-scan";
import type { Dialect } from "@fairlead/dialects/calls/dialect";
import { isStatefulAt } from "@fairlead/dialects/calls/upstream-dialect";
import { DIALECT_SPECS } from "@fairlead/dialects/dialect-specs";
import type { CallSize } from "../ports/call-limiter.ts";
import type { Candidate } from "./model-catalog.ts";

/** Upper bound of a call's tokens, whichever upstream serves it (decisions/0043). Pure. */

export interface WorstCase {
  readonly inputTokens: number;
  /** Total of all choices. */
  readonly outputTokens: number;
  /** The part of the output that streams do not show. */
  readonly unseenTokens: number;
}

export interface ScannedCall {
  readonly scan: CallScan;
  readonly dialect: Dialect;
  readonly candidates: readonly Place[];
  /** Of items that replace references. */
  readonly referredBytes?: number;
}

type Place = Pick<Candidate, "protocols" | "chat" | "contextTokens" | "maxOutputTokens">;

/** Tokens that templates and servers add around messages and tool definitions. The published maximum is 530. */
const TEMPLATE_TOKENS = 256;
const TOOLS_PROMPT_TOKENS = 768;
/** Per image: gpt-4o-mini counts 48,169 for eight tiles, the most of any model. */
export const IMAGE_TOKENS = 49_152;
/** For models without a configured context: the largest common one. It only bounds input that is not in the body. */
const UNKNOWN_CONTEXT_TOKENS = 1_048_576;
/** For models without a configured output limit: the largest limit that providers publish. */
export const UNKNOWN_OUTPUT_TOKENS = 131_072;

/** Output counted per choice before it is generated. */
const EXPECTED_OUTPUT_TOKENS = 512;
/** Above any limit, and small enough for exact sums over all running calls. */
const MOST_EXCESS_TOKENS = 2 ** 40;

export function worstCaseOf(call: ScannedCall): WorstCase {
  const { counts, input } = call.scan;
  const choices = choicesOf(counts);
  const limit = Math.max(...call.candidates.map((place) => outputLimitAt(place, call)));
  const unseenTokens = safe(choices * input.predictedBytes);
  return { inputTokens: safe(inputTokensOf(call)), outputTokens: safe(choices * limit + unseenTokens), unseenTokens };
}

export function sizeOf(call: ScannedCall): CallSize {
  const { scan } = call;
  const most = worstCaseOf(call);
  const outputTokens = Math.min(most.outputTokens, EXPECTED_OUTPUT_TOKENS * choicesOf(scan.counts));
  const unseen = scan.stream ? most.unseenTokens : most.outputTokens - outputTokens;
  const excess = Math.max(0, most.inputTokens - scan.inputTokens) + unseen;
  return { inputTokens: scan.inputTokens, outputTokens, excessTokens: Math.min(excess, MOST_EXCESS_TOKENS) };
}

/** No tokenizer produces more tokens than bytes, and no model reads more than its context. */
function inputTokensOf({ scan, dialect, candidates, referredBytes = 0 }: ScannedCall): number {
  const { bytes, attachedBytes, images, files, references, storedItems, tools, hostedTools } = scan.input;
  const isStoring = candidates.some(({ protocols }) => isStatefulAt(protocols, dialect));
  const outside = files + references + (isStoring ? storedItems : 0);
  const around = TEMPLATE_TOKENS + (tools > 0 ? TOOLS_PROMPT_TOKENS : 0);
  const told = bytes - attachedBytes + referredBytes + around + images * IMAGE_TOKENS;
  const contexts = candidates.map(({ contextTokens }) => contextTokens ?? Infinity);
  const context = Math.max(...contexts);
  if (context === Infinity) return told + (hostedTools + Math.min(1, outside)) * UNKNOWN_CONTEXT_TOKENS;
  // After each tool run by the upstream, it reads the whole input again.
  return (outside > 0 ? context : Math.min(told, context)) + hostedTools * context;
}

/** Per choice. */
function outputLimitAt(place: Place, { scan, dialect }: ScannedCall): number {
  const most = Math.min(place.maxOutputTokens ?? Infinity, place.contextTokens ?? Infinity);
  const limit = Math.min(requestedLimit(place, { counts: scan.counts, dialect }), most);
  return limit === Infinity ? UNKNOWN_OUTPUT_TOKENS : limit;
}

/** The largest of several limits, because an upstream may follow any. An unsupported one counts as no limit. */
function requestedLimit(
  { protocols, chat }: Place,
  { counts, dialect }: { readonly counts: CallCounts; readonly dialect: Dialect },
): number {
  const { known, everywhere } = DIALECT_SPECS[dialect].request.outputLimits;
  const isConverted = !protocols.includes(dialect);
  const isObeyed = (limit: CountField): boolean =>
    isConverted || everywhere.includes(limit) || limit === chat?.outputLimit;
  if (!known.some((limit) => counts[limit] !== null && isObeyed(limit))) return Infinity;
  const { max_tokens, max_completion_tokens, max_output_tokens, n_predict, num_predict, max_new_tokens } = counts;
  const all = [max_tokens, max_completion_tokens, max_output_tokens, n_predict, num_predict, max_new_tokens];
  return Math.max(...all.map((limit) => limit ?? 0));
}

const safe = (tokens: number): number => Math.min(tokens, Number.MAX_SAFE_INTEGER);
