import type { IncomingHttpHeaders } from "node:http";
import { bearerToken } from "@fairlead/hosting/requests/bearer";
import { DomainError } from "@fairlead/protocol/errors";
import { isAllowedModel } from "@fairlead/protocol/key-limits";
import type { InferenceCaller } from "../ports/inference-caller.ts";
import type { CallerAuthenticator } from "../ports/ports.ts";

/** Authenticates callers of the inference host (docs/interface.md §5). @throws DomainError `invalid_credential` and those of `callers`. */
export async function authenticateCaller(
  callers: CallerAuthenticator,
  headers: IncomingHttpHeaders,
): Promise<InferenceCaller> {
  const secret = bearerToken(headers.authorization);
  if (secret === null) {
    throw new DomainError("invalid_credential", "Send a project key: `Authorization: Bearer flk_…`.");
  }
  return callers.authenticate(secret);
}

export interface CallerKinds {
  readonly keys: CallerAuthenticator;
  readonly workers: CallerAuthenticator;
}

/** Distinguishes credentials by form: three parts are a signed token, anything else can only be a key. */
export function callersOf({ keys, workers }: CallerKinds): CallerAuthenticator {
  const isSigned = (secret: string): boolean => secret.split(".", 4).length === 3;
  return { authenticate: (secret) => (isSigned(secret) ? workers : keys).authenticate(secret) };
}

/** Limits of the key, agent or user. */
export function callerId(caller: InferenceCaller): string {
  switch (caller.kind) {
    case "key":
      return caller.keyId;
    case "worker":
      return caller.agentId;
    case "member":
      return caller.userId;
  }
}

/** Users can call all models of their project; keys and agents those in their allow list. */
export function mayCall(caller: InferenceCaller, model: string): boolean {
  return caller.kind === "member" || isAllowedModel(caller.limits.modelAllowList, model);
}

/**
 * Checks only the name, so that an error reveals nothing about existing models.
 * @param model as the caller named it. @throws DomainError `model_not_allowed`
 */
export function requireModel(caller: InferenceCaller, model: string): void {
  if (mayCall(caller, model)) return;
  const whose = caller.kind === "worker" ? "agent" : "key";
  const message = `This ${whose} may not call \`${model}\`, because the model is not in its allow list. GET /v1/models lists the models it can call.`;
  throw new DomainError("model_not_allowed", message, { param: "model" });
}
