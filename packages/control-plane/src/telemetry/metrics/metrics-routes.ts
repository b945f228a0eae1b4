import { DomainError } from "@fairlead/protocol/errors";
import type { FastifyRequest, FastifySchema } from "fastify";
import { z } from "zod";
import type { PlatformApp } from "../../http/platform-host.ts";
import type { ScrapeToken } from "./scrape-token.ts";

/** The registry, as read by scrapers. */
export interface MetricsText {
  readonly contentType: string;
  metrics(): Promise<string>;
}

/** A proxy on this machine is also a loopback peer. */
const FORWARDED = ["forwarded", "x-forwarded-for", "x-real-ip", "via"];
const OWN_NAMES = ["localhost", "127.0.0.1", "[::1]"];

const getMetrics = {
  summary: "Get the server's metrics in the Prometheus format",
  description:
    "For programs on the server's machine, scrapers with the token of the setting `metrics.tokenFile`, and platform administrators.",
  operationId: "getMetrics",
  tags: ["Server"],
  security: [{ sessionToken: [] }],
  errors: ["not_found"],
  response: { 200: { description: "The response.", content: { "text/plain": { schema: z.string() } } } },
} satisfies FastifySchema;

export interface MetricsRouteServices {
  readonly registry: MetricsText;
  /** The token of remote scrapers; null if not set. */
  readonly scrapeToken: Pick<ScrapeToken, "matches"> | null;
  readonly publicUrl: string;
}

export function registerMetricsRoutes(app: PlatformApp, services: MetricsRouteServices): void {
  const { registry, scrapeToken } = services;
  const publicHost = new URL(services.publicUrl).host;
  const onRequest = async (request: FastifyRequest): Promise<void> => {
    if (isLocal(request, publicHost)) return;
    const { authorization } = request.headers;
    if (scrapeToken?.matches(authorization) === true) return;
    const caller = await request.server.authenticate(authorization, ["user"]);
    if (!caller.platformAdmin) throw new DomainError("not_found", "Not found.");
  };
  app.get("/metrics", { onRequest, schema: getMetrics }, async (_request, reply) => {
    void reply.type(registry.contentType);
    return registry.metrics();
  });
}

/**
 * Whether a program on this machine asks. A web page in a local browser is also a loopback peer if its host name resolves to 127.0.0.1;
 * only `Host` reveals it.
 */
function isLocal({ headers, socket }: FastifyRequest, publicHost: string): boolean {
  if (!isLoopbackPeer(socket.remoteAddress) || FORWARDED.some((header) => headers[header] !== undefined)) return false;
  const host = (headers.host ?? "").toLowerCase();
  return host === publicHost || OWN_NAMES.some((name) => host === `${name}:${socket.localPort}`);
}

export function isLoopbackPeer(address: string | undefined): boolean {
  return address === "::1" || /^(::ffff:)?127\.\d+\.\d+\.\d+$/.test(address ?? "");
}
