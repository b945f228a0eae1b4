import type { FastifyRequest } from "fastify";
import type { Authenticate } from "../../access/auth/authenticate.ts";
import {
  type CallOrigin,
  isPrincipalOf,
  type Principal,
  type PrincipalKind,
  type PrincipalOf,
} from "../../access/auth/principal.ts";
import { clientAddress } from "../limits/client-address.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** The caller, on routes with `onRequest: requirePrincipal(…)`; null elsewhere. */
    principal: Principal | null;
  }
  interface FastifyInstance {
    authenticate: Authenticate;
  }
}

type Guard = (request: FastifyRequest) => Promise<void>;

/** The kinds that each guard accepts; the API document is generated from it. */
const kindsByGuard = new WeakMap<object, readonly PrincipalKind[]>();

/**
 * For a route's `onRequest`, so that a request without a credential is rejected before its body is read. Read the
 * result with `principalOf(request, …)` and the same kinds.
 */
export function requirePrincipal(...kinds: readonly PrincipalKind[]): Guard {
  const guard: Guard = async (request) => {
    const principal = await request.server.authenticate(request.headers.authorization, kinds);
    request.principal = { ...principal, origin: originOf(request) };
  };
  kindsByGuard.set(guard, kinds);
  return guard;
}

/** The origin of a request, for audit records. */
export function originOf(request: FastifyRequest): CallOrigin {
  return { requestId: request.id, address: clientAddress(request) };
}

/** @param hooks a route's `onRequest`. @returns the kinds of principal it accepts; empty if it accepts everyone. */
export function principalKindsOf(hooks: object | readonly object[] | undefined): readonly PrincipalKind[] {
  return [hooks ?? []].flat().flatMap((hook) => kindsByGuard.get(hook) ?? []);
}

/** The caller, of a kind that the route's guard accepts. */
export function principalOf<K extends PrincipalKind>(request: FastifyRequest, ...kinds: readonly K[]): PrincipalOf<K> {
  const { principal } = request;
  if (principal === null || !isPrincipalOf(principal, kinds)) {
    throw new Error(`${request.routeOptions.url} reads a principal that its guard does not ask for`);
  }
  return principal;
}
