import { DomainError, type ErrorCode } from "@fairlead/protocol/errors";
import type { ProviderRefusal, RefusalKind } from "./machine-provider.ts";

const TOKEN_CODES: Partial<Record<RefusalKind, { readonly code: ErrorCode; readonly why: string }>> = {
  bad_token: { code: "provider_token_invalid", why: "does not know this token" },
  read_only_token: { code: "provider_token_read_only", why: "lets this token read alone; make one that may write" },
  wrong_project: { code: "provider_token_wrong_project", why: "does not let this token at what it is for" },
};

/** A provider's "no" to somebody who is there to be told. Pure. */
export function providerRefused(provider: string, { kind, providerWords, retryAfterMs }: ProviderRefusal): DomainError {
  const token = TOKEN_CODES[kind];
  if (token !== undefined) {
    const message = `\`providerToken\`: ${provider} ${token.why}. It says: ${providerWords}`;
    return new DomainError(token.code, message, { param: "providerToken", source: "provider" });
  }
  const retryAfterSeconds = retryAfterMs === null ? undefined : Math.max(1, Math.ceil(retryAfterMs / 1000));
  const message = `${provider} cannot be asked just now: ${providerWords}`;
  const code = kind === "rate_limited" ? "rate_limit_exceeded" : "unavailable";
  return new DomainError(code, message, { retryAfterSeconds, source: "provider" });
}
