import type { DomainError } from "@fairlead/protocol/errors";
import { errorIn, isAccountMatter } from "./bridge/upstream-error.ts";
import { rejectedCredentials, toldFailure } from "./relayed-answer.ts";

export interface UpstreamFailure {
  readonly error: DomainError;
  /** Whether the upstream's own words may reach the caller. */
  readonly tellable: boolean;
}

/** @param error the member `error` of an answer or event, parsed. @returns null where it tells of none. */
export function failureIn(error: unknown): UpstreamFailure | null {
  const told = errorIn({ error });
  if (told === null) return null;
  if (isAccountMatter(error)) return { error: rejectedCredentials(), tellable: false };
  return { error: toldFailure(told.message), tellable: true };
}
