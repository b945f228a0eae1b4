import type { FastifyReply, FastifyRequest } from "fastify";
import { clientAddress, networkOf } from "./client-address.ts";
import type { RateLimit } from "./rate-limit.ts";

/** For a route's `onRequest`. Rejects frequent requests before their body is read. */
export type RateGuard = (request: FastifyRequest, reply: FastifyReply) => Promise<void>;

function placeOf(request: FastifyRequest): string {
  return networkOf(clientAddress(request));
}

/** Input errors are for the user to correct; 429 was already limited elsewhere. */
const NO_MISUSE: readonly number[] = [422, 429];

/** A request aborted before its response has status 200, but may have cost as much as any other. */
function hasFailed({ raw, statusCode }: FastifyReply): boolean {
  return !raw.writableEnded || (statusCode >= 400 && statusCode < 500);
}

/** Counts every request of a client address. */
export function limitCalls(limit: RateLimit): RateGuard {
  return async (request) => limit.take(placeOf(request));
}

/**
 * Counts only failed requests, so that machines with valid credentials behind one address are not blocked.
 * @param keyOf default: the client's address
 */
export function limitFailures(limit: RateLimit, keyOf: (request: FastifyRequest) => string = placeOf): RateGuard {
  return async (request, reply) => {
    const key = keyOf(request);
    await limit.take(key);
    reply.raw.once("close", () => {
      if (!hasFailed(reply)) void limit.giveBack(key);
    });
  };
}

/**
 * Like `limitFailures`, by address and claimed node, so that an attacker behind a fleet's NAT who does not know its
 * node IDs locks out none of them.
 */
export function limitFailuresOfNode(limit: RateLimit): RateGuard {
  return limitFailures(limit, (request) => `${placeOf(request)} ${(request.params as { readonly id: string }).id}`);
}

/** Like `limitFailures`, for forms: counts requests that our pages would never send. */
export function limitMisuse(limit: RateLimit): RateGuard {
  return async (request, reply) => {
    const key = placeOf(request);
    await limit.take(key);
    reply.raw.once("close", () => {
      if (NO_MISUSE.includes(reply.statusCode) || !hasFailed(reply)) void limit.giveBack(key);
    });
  };
}

/** Counts every request of a user; must run after the guard that identifies the user. */
export function limitCallsOfUser(limit: RateLimit): RateGuard {
  return async ({ principal }) => {
    if (principal?.kind === "user") await limit.take(principal.userId);
  };
}
