import { DomainError } from "@fairlead/protocol/errors";
import { blamesInput, errorIn, isAccountMatter, saysOverloaded } from "../convert/upstream-error.ts";
import { rejectedCredentials, reportedFailure } from "./relayed-answer.ts";

export interface UpstreamFailure {
  readonly error: DomainError;
  /** Whether the upstream's message may be shown to the caller. */
  readonly tellable: boolean;
}

/** @param error the field `error` of a response or event, parsed. @returns null if it reports none. */
export function failureIn(error: unknown): UpstreamFailure | null {
  const told = errorIn({ error });
  if (told === null) return null;
  if (isAccountMatter(error)) return { error: rejectedCredentials(), tellable: false };
  if (blamesInput(told)) {
    return { error: new DomainError("unsupported_input", told.message, { source: "provider" }), tellable: true };
  }
  if (saysOverloaded(told)) {
    return {
      error: new DomainError("overloaded", told.message, { source: "provider", note: "is overloaded" }),
      tellable: true,
    };
  }
  return { error: reportedFailure(told.message), tellable: true };
}
