import type { UserId } from "@fairlead/protocol/values/ids";
import type { FastifyRequest } from "fastify";
import type { UserPrincipal } from "../../../access/auth/principal.ts";
import { originOf } from "../../../http/requests/require-principal.ts";
import type { SignInCaller } from "../../sign-in/sign-in.ts";
import type { SignInSession } from "../../users/user.ts";

/** Who is at the other end of a page, as services ask for it. */

export function callerOf(request: FastifyRequest): SignInCaller {
  return { origin: originOf(request), userAgent: request.headers["user-agent"] };
}

/** The person who signed in with this browser. */
export function personOf(request: FastifyRequest, { userId, id: sessionId }: SignInSession): UserPrincipal {
  return {
    kind: "user",
    userId: userId as UserId,
    platformAdmin: false,
    sessionId,
    origin: originOf(request),
  };
}
