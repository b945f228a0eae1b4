import { type DestinationStream, type Logger, type LoggerOptions, pino } from "pino";

/** The log. Callers log ids and counts, never headers, bodies or tokens; the redaction below is only a net (wildcards reach one level). */
export type Log = Logger;

export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

const SECRET_FIELDS = [
  "authorization",
  "cookie",
  "token",
  "identityToken",
  "providerToken",
  "assertion",
  "password",
  "secret",
  "keyValue",
  "headers",
  "body",
];

/** JSON lines; to standard output unless a destination is given. */
export function createLog(options: { readonly level: LogLevel; readonly destination?: DestinationStream }): Log {
  const settings: LoggerOptions = {
    level: options.level,
    base: null,
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: (label) => ({ level: label }) },
    redact: { paths: SECRET_FIELDS.flatMap((field) => [field, `*.${field}`]), remove: true },
  };
  return pino(settings, options.destination ?? standardOutput());
}

const MOST_WAITING = 8 * 1024;

/**
 * Lines of one turn of the event loop are one write: under load that was an eighth of the CPU of a small call. What was said before
 * the end is written. The stream's own collecting is not used: its `flushSync` also flushes the disk, for milliseconds, where the output is a file.
 */
function standardOutput(): DestinationStream & { flushSync(): void } {
  const output = pino.destination({ dest: 1, sync: true });
  let lines = "";
  let waiting = false;
  const write = (): void => {
    if (lines !== "") output.write(lines);
    lines = "";
  };
  const flushSync = (): void => {
    write();
    output.flushSync();
  };
  process.on("exit", flushSync);
  return {
    write: (line) => {
      lines += line;
      if (lines.length >= MOST_WAITING) write();
      if (waiting) return;
      waiting = true;
      setImmediate(() => {
        waiting = false;
        write();
      });
    },
    flushSync,
  };
}
