import type { DomainError } from "@fairlead/protocol/errors";
import type { Budget } from "../billing/budget.ts";
import type { Prices } from "../billing/prices.ts";
import type { CallScan } from "./call-scan.ts";
import { callerId } from "./caller.ts";
import type { InferenceCall } from "./inference-call.ts";
import type { Candidate } from "./model-catalog.ts";
import type { TokenUsage } from "./token-usage.ts";

/** What a call costs, as far as the pipeline asks (design §9); the billing service answers. */
export interface CallBilling {
  /**
   * Sets money aside before a call is dispatched.
   * @throws DomainError insufficient_balance, key_budget_exceeded, agent_budget_exceeded, held_by_running_calls, not_configured, unavailable
   */
  open(call: BilledCall): Promise<CallHold>;
}

export interface BilledCall {
  readonly callId: string;
  readonly projectId: string;
  /** The key or the agent whose budget counts; null for a member. */
  readonly spenderId: string | null;
  readonly budget: Budget | null;
  /** Null where a place that may serve the call has none. */
  readonly prices: Prices | null;
  /** An estimate. */
  readonly inputTokens: number;
  /** The most that it can generate. */
  readonly outputLimit: number;
  readonly streamed: boolean;
}

export interface CallHold {
  /** As more is generated. @returns why no more may be, or null. */
  cover(outputTokens: number): DomainError | null;
  /** @param prices of the place that answered. @returns what was charged, in nano-dollars. */
  settle(usage: TokenUsage | null, prices: Prices | null): number;
}

/** Where nobody asks for money. */
export const NO_BILLING: CallBilling = { open: async () => ({ cover: () => null, settle: () => 0 }) };

/** What is held for an answer whose greatest length nobody told. */
const UNKNOWN_OUTPUT_TOKENS = 4096;

export function billedCall(
  { id, caller }: Pick<InferenceCall, "id" | "caller">,
  scan: CallScan,
  candidates: readonly Candidate[],
): BilledCall {
  return {
    callId: id,
    projectId: caller.projectId,
    spenderId: caller.kind === "member" ? null : callerId(caller),
    budget: caller.kind === "member" ? null : caller.limits.budget,
    prices: dearest(candidates),
    inputTokens: scan.inputTokens,
    outputLimit: outputLimitOf(scan, candidates) * scan.choices,
    streamed: scan.stream,
  };
}

/** Of one answer: the body's limit, but no more than the model's. */
function outputLimitOf({ outputLimit }: CallScan, candidates: readonly Candidate[]): number {
  const known = candidates.map(({ maxOutputTokens, contextTokens }) => maxOutputTokens ?? contextTokens ?? Infinity);
  const limit = Math.min(outputLimit ?? Infinity, Math.max(...known));
  return limit === Infinity ? UNKNOWN_OUTPUT_TOKENS : limit;
}

/** What the call costs at most, wherever it ends up. */
function dearest(candidates: readonly Candidate[]): Prices | null {
  let most: Prices | null = null;
  for (const { prices } of candidates) {
    if (prices === null) return null;
    most = most === null ? prices : greater(most, prices);
  }
  return most;
}

function greater(a: Prices, b: Prices): Prices {
  return {
    input: Math.max(a.input, b.input),
    cachedInput: Math.max(a.cachedInput ?? a.input, b.cachedInput ?? b.input),
    output: Math.max(a.output, b.output),
    perRequest: Math.max(a.perRequest, b.perRequest),
  };
}
