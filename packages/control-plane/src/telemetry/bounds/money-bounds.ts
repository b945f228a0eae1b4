import type { BoundRows } from "./bound-row.ts";

/** What a call reserves before it is sent. */
export const MONEY_BOUNDS = {
  call_input: {
    party: "caller",
    entry: "body of a model call",
    limit:
      "reserved before the call: one token per byte of text, 49,152 per image, at most the model's `contextTokens`; all of `contextTokens` if files or stored input are referenced",
    effect: "402 before the call is sent",
    counted: '`fairlead_inference_calls_total{outcome="insufficient_balance"}` and the other 402 codes',
    test: "packages/inference/src/calls/worst-case.test.ts: for any body, no strict upstream counts more than is reserved",
  },
  call_output: {
    party: "caller",
    entry: "`n`, `max_tokens` and similar fields of a model call",
    limit:
      "reserved before the call: the number of choices times the smallest of the requested limit, `maxOutputTokens` and `contextTokens`; values that are not plain integers count as the most that any upstream reads",
    effect: "402 before the call is sent; a stream stops when its next step is not covered",
    counted: '`fairlead_inference_calls_total{outcome="insufficient_balance"}` and the other 402 codes',
    test: "packages/inference/src/calls/worst-case.test.ts: with %s is the most that any upstream would read",
  },
  call_estimate: {
    party: "upstream",
    entry: "a response without usage",
    limit: "charged at most the reserved amount",
    effect: "the rest is not charged",
    counted: "usage rows with `estimated`",
    test: "packages/control-plane/src/money/calls/overspending.test.ts: by calls whose upstream reports no usage and sends a long response",
  },
  call_cost: {
    party: "upstream",
    entry: "usage in a response",
    limit: "the amount reserved for the call",
    effect:
      "charged up to the balance, the rest is written off; set the model's `maxOutputTokens` and `contextTokens` if it recurs",
    test: "packages/control-plane/src/money/billing/billing-service.contract.ts: charges and counts usage that an upstream reports beyond the hold",
  },
  tokens_at_once: {
    party: "caller",
    entry: "parallel calls under `tokensPerMinute`",
    limit: "one running call may use more than what remains of the limit",
    effect: "429 with `retry-after`",
    counted: '`fairlead_rate_limit_refusals_total{limit="tokens"}`',
    test: "packages/control-plane/src/money/calls/overspending.test.ts: a single call can exceed what remains",
  },
} as const satisfies BoundRows;
