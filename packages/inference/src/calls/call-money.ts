import type { TokenUsage } from "@fairlead/dialects/calls/token-usage";
import type { DomainError } from "@fairlead/protocol/errors";
import type { KeyLimits } from "@fairlead/protocol/resources";
import type { Prices } from "../ports/prices.ts";
import { callerId } from "./caller.ts";
import type { InferenceCall } from "./inference-call.ts";
import type { Candidate } from "./model-catalog.ts";
import { type ScannedCall, worstCaseOf } from "./worst-case.ts";

/** Billing as the pipeline sees it (decisions/0019); implemented by the billing service. */
export interface CallBilling {
  /**
   * Reserves balance before a call is dispatched.
   * @throws DomainError insufficient_balance, key_budget_exceeded, agent_budget_exceeded, held_by_running_calls, not_configured,
   * unavailable
   */
  open(call: BilledCall): Promise<CallHold>;
}

export interface BilledCall {
  readonly callId: string;
  readonly projectId: string;
  /** The key or agent whose budget applies; null for a member. */
  readonly spenderId: string | null;
  readonly budget: KeyLimits["budget"] | null;
  /** Null if an upstream that may serve the call has none. */
  readonly prices: Prices | null;
  /** An estimate. */
  readonly inputTokens: number;
  /** Upper bound of the input. */
  readonly inputLimit: number;
  /** Upper bound of the output. */
  readonly outputLimit: number;
  /** The part of the output that streams do not show. */
  readonly unseenTokens: number;
  readonly streamed: boolean;
}

export interface CallHold {
  /** Reserves balance for more output. @returns the error that must end the call, or null. */
  cover(outputTokens: number): DomainError | null;
  /**
   * @param prices of the upstream that responded. @param estimated whether the usage is our estimate.
   * @returns the charge in nano-dollars.
   */
  settle(usage: TokenUsage | null, prices: Prices | null, estimated: boolean): number;
}

/** Used if calls are not billed. */
export const NO_BILLING: CallBilling = { open: async () => ({ cover: () => null, settle: () => 0 }) };

export function billedCall({ id, caller }: Pick<InferenceCall, "id" | "caller">, call: PricedCall): BilledCall {
  const { scan, candidates } = call;
  const most = worstCaseOf(call);
  return {
    callId: id,
    projectId: caller.projectId,
    spenderId: caller.kind === "member" ? null : callerId(caller),
    budget: caller.kind === "member" ? null : caller.limits.budget,
    prices: dearest(candidates),
    inputTokens: scan.inputTokens,
    inputLimit: most.inputTokens,
    outputLimit: most.outputTokens,
    unseenTokens: most.unseenTokens,
    streamed: scan.stream,
  };
}

type PricedCall = ScannedCall & { readonly candidates: readonly Candidate[] };

/** Upper bound of the call's price over all candidates. */
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
