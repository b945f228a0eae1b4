import type { IncomingHttpHeaders } from "node:http";
import { DomainError } from "@fairlead/protocol/errors";
import { bearerToken } from "../auth/bearer.ts";
import type { KeyAuthenticator, KeyOwner } from "./ports.ts";

/** Who calls the inference host: project keys only (interface §5). @throws DomainError `invalid_credential` and those of `keys`. */
export function authenticateCaller(keys: KeyAuthenticator, headers: IncomingHttpHeaders): Promise<KeyOwner> {
  const secret = bearerToken(headers.authorization);
  if (secret === null) {
    throw new DomainError("invalid_credential", "Send a project key: `Authorization: Bearer flk_…`.");
  }
  if (isJwt(secret)) {
    const message =
      "This is a session or node token, which the platform host takes. The inference host takes project keys (flk_…).";
    throw new DomainError("invalid_credential", message);
  }
  return keys.authenticate(secret);
}

function isJwt(secret: string): boolean {
  return secret.split(".", 4).length === 3;
}
