import { DomainError } from "@fairlead/protocol/errors";
import type { FastifyRequest, FastifySchema } from "fastify";
import { z } from "zod";
import type { PlatformApp } from "../http/platform-host.ts";

/** What a scraper reads; the registry. */
export interface MetricsText {
  readonly contentType: string;
  metrics(): Promise<string>;
}

/** A proxy on this machine is a loopback peer too, and speaks for anybody. */
const FORWARDED = ["forwarded", "x-forwarded-for", "x-real-ip", "via"];

const getMetrics = {
  summary: "The server's figures, for Prometheus",
  description: "For programs on the server's own machine, and for platform administrators.",
  operationId: "getMetrics",
  tags: ["Server"],
  security: [{ sessionToken: [] }],
  errors: ["not_found"],
  response: { 200: { description: "The answer.", content: { "text/plain": { schema: z.string() } } } },
} satisfies FastifySchema;

export function registerMetricsRoutes(app: PlatformApp, registry: MetricsText): void {
  app.get("/metrics", { onRequest: requireLocalOrAdministrator, schema: getMetrics }, async (_request, reply) => {
    void reply.type(registry.contentType);
    return registry.metrics();
  });
}

async function requireLocalOrAdministrator(request: FastifyRequest): Promise<void> {
  const direct = FORWARDED.every((header) => request.headers[header] === undefined);
  if (direct && isLoopback(request.socket.remoteAddress)) return;
  const caller = await request.server.authenticate(request.headers.authorization, ["user"]);
  if (!caller.platformAdmin) throw new DomainError("not_found", "There is nothing at this path.");
}

export function isLoopback(address: string | undefined): boolean {
  return address === "::1" || /^(::ffff:)?127\.\d+\.\d+\.\d+$/.test(address ?? "");
}
