import { type Logger, pino } from "pino";

export const DAEMON_LOG_LEVELS = ["debug", "info", "warn", "error"] as const;
export type DaemonLogLevel = (typeof DAEMON_LOG_LEVELS)[number];
export type DaemonLog = Pick<Logger, DaemonLogLevel>;

/** Logs JSON lines to stdout. Callers never pass values of secrets or headers. */
export function createDaemonLog(level: DaemonLogLevel): Logger {
  return pino({ level, base: { program: "fairlead-daemon" }, timestamp: pino.stdTimeFunctions.isoTime });
}

/** An error and its causes in one line, without stacks or bodies. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.cause === undefined) return error.message.trim();
  const below = reasonOf(error.cause);
  // Skip a cause that the message already contains.
  if (below.includes(error.message)) return below;
  return error.message.includes(below) ? error.message : `${error.message}: ${below}`;
}
