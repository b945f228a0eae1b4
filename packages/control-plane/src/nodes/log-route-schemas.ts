import { pipeline } from "node:stream";
import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { LOG_TYPES, LogFormatter, logFormatOf } from "./log-formats.ts";
import type { NodeLogStream } from "./node-log-stream.ts";

/** What routes that tell a workload's output have in common. */

const MAX_TAIL = 100_000;

/** How it is told, for the description of such a route. */
export const LOG_FORMS =
  "Straight from the node's daemon, the oldest line first: as plain text, or by `Accept` as events (`text/event-stream`, ended by " +
  "`[DONE]`) or JSON lines (`application/x-ndjson`), each `{at, stream, text}`. With `follow` it goes on through restarts and updates.";

export const logQueryFields = {
  follow: z.stringbool().default(false).describe("Wait for what is yet to be printed."),
  since: z.iso.datetime({ offset: true }).optional().describe("RFC 3339: only lines from then on."),
  tail: z.coerce.number().int().min(0).max(MAX_TAIL).optional().describe("Only so many of the last lines."),
};

export const logAnswer = {
  description: "The lines.",
  content: {
    "text/plain": { schema: z.string() },
    "text/event-stream": { schema: z.string() },
    "application/x-ndjson": { schema: z.string() },
  },
};

/** What is sent in answer, in the form that the request accepts. */
export function logText(request: Pick<FastifyRequest, "headers">, reply: FastifyReply, lines: NodeLogStream): string {
  const format = logFormatOf(request.headers.accept);
  // What was begun cannot be taken back: a stream that breaks off does not look whole.
  const told = pipeline(lines, new LogFormatter(format), () => undefined);
  reply.type(LOG_TYPES[format]).header("cache-control", "no-store");
  // To its reader it is the text that the document names.
  return told as never;
}
