import { pipeline } from "node:stream";
import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { LOG_TYPES, LogFormatter, logFormatOf } from "../desired/log-formats.ts";
import type { NodeLogStream } from "./node-log-stream.ts";

/** Shared schemas of log routes. */

const MAX_TAIL = 100_000;

/** Part of the description of such routes. */
export const LOG_FORMS =
  "Read directly from the node's daemon, oldest line first: as plain text or, depending on `Accept`, as events (`text/event-stream`, terminated by " +
  "`[DONE]`) or JSON lines (`application/x-ndjson`), each `{at, stream, text}`. With `follow`, the response continues across restarts and updates.";

export const logQueryFields = {
  follow: z.stringbool().default(false).describe("Whether to wait for new lines."),
  since: z.iso.datetime({ offset: true }).optional().describe("Only lines from this time on (RFC 3339)."),
  tail: z.coerce.number().int().min(0).max(MAX_TAIL).optional().describe("Only the last lines, up to this number."),
};

export const logAnswer = {
  description: "The lines.",
  content: {
    "text/plain": { schema: z.string() },
    "text/event-stream": { schema: z.string() },
    "application/x-ndjson": { schema: z.string() },
  },
};

/** The response, in the form that the request accepts. */
export function logText(request: Pick<FastifyRequest, "headers">, reply: FastifyReply, lines: NodeLogStream): string {
  const format = logFormatOf(request.headers.accept);
  // After the start, a failing stream must not look complete.
  const told = pipeline(lines, new LogFormatter(format), () => undefined);
  reply.type(LOG_TYPES[format]).header("cache-control", "no-store");
  // The document describes it as a string.
  return told as never;
}
