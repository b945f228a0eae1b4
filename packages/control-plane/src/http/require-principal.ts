import type { FastifyRequest } from "fastify";
import type { Authenticate } from "../auth/authenticate.ts";
import {
  type CallOrigin,
  isPrincipalOf,
  type Principal,
  type PrincipalKind,
  type PrincipalOf,
} from "../auth/principal.ts";
import { clientAddress } from "./client-address.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** Who calls, on routes with `onRequest: requirePrincipal(…)`; null elsewhere. */
    principal: Principal | null;
  }
  interface FastifyInstance {
    authenticate: Authenticate;
  }
}

type Guard = (request: FastifyRequest) => Promise<void>;

/** Which kinds each guard lets in: the API document is told by the guards themselves. */
const kindsByGuard = new WeakMap<object, readonly PrincipalKind[]>();

/**
 * For a route's `onRequest`, so that a caller without a credential is refused before the body is read or judged.
 * Read the result with `principalOf(request, …)` and the same kinds.
 */
export function requirePrincipal(...kinds: readonly PrincipalKind[]): Guard {
  const guard: Guard = async (request) => {
    const principal = await request.server.authenticate(request.headers.authorization, kinds);
    request.principal = { ...principal, origin: originOf(request) };
  };
  kindsByGuard.set(guard, kinds);
  return guard;
}

/** Where a request came from, for what is recorded of it. */
export function originOf(request: FastifyRequest): CallOrigin {
  return { requestId: request.id, address: clientAddress(request) };
}

/** @param hooks a route's `onRequest`. @returns the kinds of caller that it lets in; none where it lets in everybody. */
export function principalKindsOf(hooks: object | readonly object[] | undefined): readonly PrincipalKind[] {
  return [hooks ?? []].flat().flatMap((hook) => kindsByGuard.get(hook) ?? []);
}

/** The caller, of one of the kinds that the route's guard let in. */
export function principalOf<K extends PrincipalKind>(request: FastifyRequest, ...kinds: readonly K[]): PrincipalOf<K> {
  const { principal } = request;
  if (principal === null || !isPrincipalOf(principal, kinds)) {
    throw new Error(`${request.routeOptions.url} reads a principal that its guard does not ask for`);
  }
  return principal;
}
