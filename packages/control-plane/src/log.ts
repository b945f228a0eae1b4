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
  return options.destination ? pino(settings, options.destination) : pino(settings);
}
