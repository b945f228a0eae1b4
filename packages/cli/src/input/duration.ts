import { UsageError } from "../cli-error.ts";

const SECONDS: Readonly<Record<string, number>> = { "": 1, s: 1, m: 60, h: 3600, d: 86_400 };
const FORM = /^(\d{1,9})([smhd]?)$/;

export function isDuration(text: string): boolean {
  return FORM.test(text);
}

/** Reads `90`, `90s`, `30m`, `12h` or `7d`. @returns seconds, an integer of at least 1. */
export function parseDuration(text: string): number {
  const match = FORM.exec(text);
  const seconds = match ? Number(match[1]) * (SECONDS[match[2] ?? ""] ?? 0) : 0;
  if (seconds < 1)
    throw new UsageError(`"${text}" is not a duration. Use a format such as 12h, 30m, 7d or a number of seconds.`);
  return seconds;
}
