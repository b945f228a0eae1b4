import type { InferenceCaller } from "./inference-caller.ts";
import { type Permit, UNLIMITED } from "./permit.ts";

/** Estimated size of a call, counted before it runs. Tokens. */
export interface CallSize {
  /** Estimates, corrected by the permit. Only the output that is certain: a caller's own limit may be huge. */
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** How far the actual usage may exceed the estimate. */
  readonly excessTokens: number;
}

/** Limits as the inference host sees them. */
export interface CallLimiter {
  /** @throws DomainError `unavailable` if the store cannot return the project's limits. */
  admit(caller: InferenceCaller, size: CallSize): Promise<Permit>;
  /** Rate-limit headers of responses that are not counted. */
  headersFor(caller: InferenceCaller): Promise<Permit["headers"]>;
}

/** Used if no limits exist. */
export const NO_LIMITER: CallLimiter = {
  admit: () => Promise.resolve(UNLIMITED),
  headersFor: () => Promise.resolve({}),
};
