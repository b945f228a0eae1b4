import { notReady } from "@fairlead/hosting/errors/error-response";
import type { JSONWebKeySet } from "jose";
import { z } from "zod";
import type { HttpApp } from "./http-app.ts";

export interface HealthOptions {
  /** Resolves while the server can serve requests; rejects with the reason. */
  readonly ready: () => Promise<void>;
  readonly publicJwks: () => JSONWebKeySet;
}

const health = z.object({ status: z.literal("ok") });
const readiness = z.object({ status: z.literal("ready") });
const publicKeys = z.object({ keys: z.array(z.record(z.string(), z.unknown())) });

/** Health, readiness and signing keys. */
export function registerHealthRoutes(app: HttpApp, options: HealthOptions): void {
  const tags = ["Server"];

  app.get(
    "/healthz",
    {
      schema: {
        summary: "Check whether the server is alive",
        operationId: "getHealth",
        tags,
        response: { 200: health },
      },
    },
    async () => ({ status: "ok" as const }),
  );

  app.get(
    "/readyz",
    {
      schema: {
        summary: "Check whether the server is ready",
        description:
          "503 while the store does not respond or cannot write (see the message), and while the server shuts down.",
        operationId: "getReadiness",
        tags,
        response: { 200: readiness },
      },
    },
    async () => {
      try {
        await options.ready();
      } catch (error) {
        throw notReady(error);
      }
      return { status: "ready" as const };
    },
  );

  app.get(
    "/.well-known/jwks.json",
    {
      schema: {
        summary: "Get the public keys of this installation's tokens",
        operationId: "getPublicKeys",
        tags,
        response: { 200: publicKeys },
      },
    },
    async (_request, reply) => {
      void reply.header("cache-control", "public, max-age=60");
      return options.publicJwks();
    },
  );
}
