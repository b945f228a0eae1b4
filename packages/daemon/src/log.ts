import { type Logger, pino } from "pino";

export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];
export type Log = Pick<Logger, LogLevel>;

/** JSON lines to standard output, for the journal. Callers pass names and messages, never values of secrets or headers. */
export function createLog(level: LogLevel): Logger {
  return pino({ level, base: { program: "fairlead-daemon" }, timestamp: pino.stdTimeFunctions.isoTime });
}

/** One line about an error and its causes, without stacks or bodies. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.cause === undefined) return error.message.trim();
  const below = reasonOf(error.cause);
  // Causes often say the same and more, or were quoted.
  if (below.includes(error.message)) return below;
  return error.message.includes(below) ? error.message : `${error.message}: ${below}`;
}
