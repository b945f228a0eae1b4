import { DomainError } from "@fairlead/protocol/errors";
import type { JSONWebKeySet } from "jose";
import { z } from "zod";
import type { HttpApp } from "./http-app.ts";

export interface HealthOptions {
  /** Resolves while requests can be answered; rejects with the reason. */
  readonly ready: () => Promise<void>;
  readonly publicJwks: () => JSONWebKeySet;
}

const health = z.object({ status: z.literal("ok") });
const readiness = z.object({ status: z.literal("ready") });
const publicKeys = z.object({ keys: z.array(z.record(z.string(), z.unknown())) });

/** What machines ask of any server: is it alive, may it get traffic, and with which keys does it sign. */
export function registerHealthRoutes(app: HttpApp, options: HealthOptions): void {
  const tags = ["Server"];

  app.get(
    "/healthz",
    { schema: { summary: "Whether the server is alive", operationId: "getHealth", tags, response: { 200: health } } },
    async () => ({ status: "ok" as const }),
  );

  app.get(
    "/readyz",
    {
      schema: {
        summary: "Whether the server may get traffic",
        description: "503 while the store does not answer, and while the server stops.",
        operationId: "getReadiness",
        tags,
        response: { 200: readiness },
      },
    },
    async () => {
      try {
        await options.ready();
      } catch (error) {
        throw new DomainError("unavailable", "The server is not ready.", { cause: error, retryAfterSeconds: 1 });
      }
      return { status: "ready" as const };
    },
  );

  app.get(
    "/.well-known/jwks.json",
    {
      schema: {
        summary: "The public keys that sign this installation's tokens",
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
