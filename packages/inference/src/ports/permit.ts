import type { DomainError } from "@fairlead/protocol/errors";

/** The limiter's decision on a call. */
export interface Permit {
  /** `x-ratelimit-*` headers for any response to the call. */
  readonly headers: Readonly<Record<string, string>>;
  /** Why the call may not run; then nothing is counted, and `end` is not needed. */
  readonly refusal: DomainError | null;
  /** Reports generated tokens, so that a long response counts while it runs. */
  generated(outputTokens: number): void;
  /** Ends the call, on every path; idempotent. @param tokens input and output; null if nothing was generated. */
  end(tokens: number | null): void;
}

/** Used if no limits are configured. */
export const UNLIMITED: Permit = {
  headers: {},
  refusal: null,
  generated: () => undefined,
  end: () => undefined,
};

export function refused(refusal: DomainError, headers: Permit["headers"]): Permit {
  return { ...UNLIMITED, refusal, headers };
}
