import type { IncomingHttpHeaders } from "node:http";
import { DomainError } from "@fairlead/protocol/errors";
import { bearerToken } from "../auth/bearer.ts";
import type { InferenceCaller } from "../auth/principal.ts";
import { isAllowedModel } from "../keys/key-limits.ts";
import type { CallerAuthenticator } from "./ports.ts";

/** Who calls the inference host (interface §5). @throws DomainError `invalid_credential` and those of `callers`. */
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

/** Every kind of caller by its credential's form: what has three parts is a signed token, all else can only be a key. */
export function callersOf({ keys, workers }: CallerKinds): CallerAuthenticator {
  const isSigned = (secret: string): boolean => secret.split(".", 4).length === 3;
  return { authenticate: (secret) => (isSigned(secret) ? workers : keys).authenticate(secret) };
}

/** Of the key, the agent, or the person. */
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

/** Members may call whatever their project has; a key or an agent, what its allow-list names. */
export function mayCall(caller: InferenceCaller, model: string): boolean {
  return caller.kind === "member" || isAllowedModel(caller.limits.modelAllowList, model);
}

/**
 * Judged by the name alone, so that a refusal tells nothing of what there is.
 * @param model as the caller named it. @throws DomainError `model_not_allowed`
 */
export function requireModel(caller: InferenceCaller, model: string): void {
  if (mayCall(caller, model)) return;
  const whose = caller.kind === "worker" ? "agent" : "key";
  const message = `This ${whose} may not call \`${model}\`: it is not on the ${whose}'s list of models. GET /v1/models lists what it may call.`;
  throw new DomainError("model_not_allowed", message, { param: "model" });
}
