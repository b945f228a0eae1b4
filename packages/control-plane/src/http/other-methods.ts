import { DomainError } from "@fairlead/protocol/errors";
import type { HttpApp } from "./http-app.ts";

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] as const;

/**
 * Answers 405 with `Allow` where a path exists but the method does not; Fastify alone would say 404.
 * Call before the first route; `seal` after the last.
 */
export function refuseOtherMethods(app: HttpApp): { seal(app: HttpApp): void } {
  const methodsByPath = new Map<string, Set<string>>();
  app.addHook("onRoute", (route) => {
    const methods = methodsByPath.get(route.url) ?? new Set();
    for (const method of [route.method].flat()) methods.add(method);
    methodsByPath.set(route.url, methods);
  });
  return {
    seal: (last) => {
      for (const [url, methods] of methodsByPath) refuseOthers(last, url, new Set(methods));
    },
  };
}

function refuseOthers(app: HttpApp, url: string, allowed: ReadonlySet<string>): void {
  const refused = METHODS.filter((method) => !allowed.has(method));
  if (refused.length === 0) return;
  const allow = [...allowed].toSorted().join(", ");
  app.route({
    method: refused,
    url,
    schema: { hide: true },
    handler: async (request, reply) => {
      void reply.header("allow", allow);
      throw new DomainError("method_not_allowed", `${request.method} is not possible here; allowed: ${allow}.`);
    },
  });
}
