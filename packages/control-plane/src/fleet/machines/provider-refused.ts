import { DomainError, type ErrorCode } from "@fairlead/protocol/errors";
import type { ProviderRefusal, RefusalKind } from "./machine-provider.ts";

const TOKEN_CODES: Partial<Record<RefusalKind, { readonly code: ErrorCode; readonly why: string }>> = {
  bad_token: { code: "provider_token_invalid", why: "does not recognize this token" },
  read_only_token: {
    code: "provider_token_read_only",
    why: "reports that this token is read-only; create one with read and write access",
  },
  wrong_project: { code: "provider_token_wrong_project", why: "does not allow this token to access this resource" },
};

/** Retrying does not help, so the message says what does. */
export function outdatedWords(provider: string, providerWords: string): string {
  return `${provider} returned ${providerWords}. This version of Fairlead is too old for its API; upgrade the control plane.`;
}

/** Converts a provider's error for a caller. Pure. */
export function providerRefused(provider: string, { kind, providerWords, retryAfterMs }: ProviderRefusal): DomainError {
  const token = TOKEN_CODES[kind];
  if (token !== undefined) {
    const message = `\`providerToken\`: ${provider} ${token.why}. Response: ${providerWords}`;
    return new DomainError(token.code, message, { param: "providerToken", source: "provider" });
  }
  if (kind === "outdated") {
    return new DomainError("unavailable", outdatedWords(provider, providerWords), { source: "provider" });
  }
  const retryAfterSeconds = retryAfterMs === null ? undefined : Math.max(1, Math.ceil(retryAfterMs / 1000));
  const message = `${provider} is unavailable: ${providerWords}`;
  const code = kind === "rate_limited" ? "rate_limit_exceeded" : "unavailable";
  return new DomainError(code, message, { retryAfterSeconds, source: "provider" });
}
