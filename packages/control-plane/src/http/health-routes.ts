import { DomainError } from "@fairlead/protocol/errors";
import type { JSONWebKeySet } from "jose";
import type { HttpApp } from "./http-app.ts";

export interface HealthOptions {
  /** Resolves while requests can be answered; rejects with the reason. */
  readonly ready: () => Promise<void>;
  readonly publicJwks: () => JSONWebKeySet;
}

/** What machines ask of any server: is it alive, may it get traffic, and with which keys does it sign. */
export function registerHealthRoutes(app: HttpApp, options: HealthOptions): void {
  app.get("/healthz", async () => ({ status: "ok" }));

  app.get("/readyz", async () => {
    try {
      await options.ready();
    } catch (error) {
      throw new DomainError("unavailable", "The server is not ready.", { cause: error, retryAfterSeconds: 1 });
    }
    return { status: "ready" };
  });

  app.get("/.well-known/jwks.json", async (_request, reply) => {
    void reply.header("cache-control", "public, max-age=60");
    return options.publicJwks();
  });
}
