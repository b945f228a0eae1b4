import type { FastifyReply, FastifyRequest } from "fastify";
import { clientAddress, networkOf } from "./client-address.ts";
import type { RateLimit } from "./rate-limit.ts";

/** For a route's `onRequest`. Who tries too often is refused before the body is read. */
export type RateGuard = (request: FastifyRequest, reply: FastifyReply) => Promise<void>;

/** Every call of one client's address counts. */
export function limitCalls(limit: RateLimit): RateGuard {
  return async (request) => limit.take(networkOf(clientAddress(request)));
}

/** Calls of one client's address count where they fail: many machines behind one address that know their credentials go on. */
export function limitFailures(limit: RateLimit): RateGuard {
  return async (request, reply) => {
    const key = networkOf(clientAddress(request));
    await limit.take(key);
    reply.raw.once("close", () => {
      const failed = reply.statusCode >= 400 && reply.statusCode < 500;
      if (!failed) void limit.giveBack(key);
    });
  };
}

/** Every call of one person counts; after the guard that finds out who it is. */
export function limitCallsOfUser(limit: RateLimit): RateGuard {
  return async ({ principal }) => {
    if (principal?.kind === "user") await limit.take(principal.userId);
  };
}
