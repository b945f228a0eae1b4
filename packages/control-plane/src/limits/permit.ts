import type { DomainError } from "@fairlead/protocol/errors";

/** What a call was told when it asked to run. */
export interface Permit {
  /** `x-ratelimit-*`, for whatever it is answered. */
  readonly headers: Readonly<Record<string, string>>;
  /** Why it may not run; then nothing is counted, and nothing has to be ended. */
  readonly refusal: DomainError | null;
  /** As more is generated, so that a long answer counts while it is made. */
  generated(outputTokens: number): void;
  /** The end, on whatever path. Repeating it does nothing. @param tokens input and output; null where nothing was generated. */
  end(tokens: number | null): void;
}

/** Where nobody set a limit. */
export const UNLIMITED: Permit = {
  headers: {},
  refusal: null,
  generated: () => undefined,
  end: () => undefined,
};

export function refused(refusal: DomainError, headers: Permit["headers"]): Permit {
  return { ...UNLIMITED, refusal, headers };
}
