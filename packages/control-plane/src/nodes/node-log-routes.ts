import { pipeline } from "node:stream";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import type { PlatformApp } from "../http/platform-host.ts";
import { principalOf, requirePrincipal } from "../http/require-principal.ts";
import { LOG_TYPES, LogFormatter, logFormatOf } from "./log-formats.ts";
import type { NodeLogService } from "./node-log-service.ts";
import { NODE_PATH, nodeParams } from "./node-routes.ts";
import { ENGINE_WORKLOAD } from "./plan-desired.ts";

const MAX_TAIL = 100_000;

const getNodeLogs = {
  summary: "Read what a node's engine prints",
  description:
    "Straight from the node's daemon, the oldest line first: as plain text, or by `Accept` as events (`text/event-stream`, ended by " +
    "`[DONE]`) or JSON lines (`application/x-ndjson`), each `{at, stream, text}`. With `follow` it goes on through restarts and " +
    "updates. For owners and administrators, and recorded: engines may print what they were asked.",
  operationId: "getNodeLogs",
  tags: ["Nodes"],
  errors: ["not_found", "permission_denied", "no_running_engine", "unavailable", "overloaded"],
  params: nodeParams,
  querystring: z.strictObject({
    workload: z.literal(ENGINE_WORKLOAD).default(ENGINE_WORKLOAD),
    follow: z.stringbool().default(false).describe("Wait for what is yet to be printed."),
    since: z.iso.datetime({ offset: true }).optional().describe("RFC 3339: only lines from then on."),
    tail: z.coerce.number().int().min(0).max(MAX_TAIL).optional().describe("Only so many of the last lines."),
  }),
  response: {
    200: {
      description: "The lines.",
      content: {
        "text/plain": { schema: z.string() },
        "text/event-stream": { schema: z.string() },
        "application/x-ndjson": { schema: z.string() },
      },
    },
  },
} satisfies FastifySchema;

export function registerNodeLogRoutes(app: PlatformApp, logs: NodeLogService): void {
  const onRequest = requirePrincipal("user");
  app.get(`${NODE_PATH}/logs`, { onRequest, schema: getNodeLogs }, async (request, reply) => {
    const lines = await logs.open(principalOf(request, "user"), request.params.id, request.query);
    const format = logFormatOf(request.headers.accept);
    // What was begun cannot be taken back: a stream that breaks off does not look whole.
    const told = pipeline(lines, new LogFormatter(format), () => undefined);
    // To its reader it is the text that the document names.
    return reply
      .type(LOG_TYPES[format])
      .header("cache-control", "no-store")
      .send(told as never);
  });
}
