import type { DomainError } from "@fairlead/protocol/errors";
import { errorIn } from "./bridge/upstream-error.ts";
import { rejectedCredentials, toldFailure } from "./relayed-answer.ts";

/** Codes and types by which upstreams refuse credentials or accounts: ours, not the caller's. */
const OURS =
  /^(401|402|403|authentication_error|permission_error|billing_error|invalid_api_key|insufficient_quota|insufficient_balance|account_deactivated)$/;

export interface UpstreamFailure {
  readonly error: DomainError;
  /** Whether the upstream's own words may reach the caller. */
  readonly tellable: boolean;
}

/** @param error the member `error` of an answer or event, parsed. @returns null where it tells of none. */
export function failureIn(error: unknown): UpstreamFailure | null {
  const told = errorIn({ error });
  if (told === null) return null;
  if (isOurs(error)) return { error: rejectedCredentials(), tellable: false };
  return { error: toldFailure(told.message), tellable: true };
}

function isOurs(error: unknown): boolean {
  if (typeof error !== "object" || error === null) return false;
  const { code, type } = error as Record<string, unknown>;
  return [code, type].some((each) => OURS.test(typeof each === "number" || typeof each === "string" ? `${each}` : ""));
}
