import { rfc3339 } from "@fairlead/protocol/values/clock";
import { UsageError } from "../cli-error.ts";
import { isDuration, parseDuration } from "./duration.ts";

/** Parses points in time. */

export interface MomentMeaning {
  /** Unix milliseconds. */
  readonly now: number;
  /** Whether `30d` is in the future or in the past. */
  readonly durations: "ahead" | "ago";
  /** Whether `2026-12-31` is the start or the end of that day (UTC). */
  readonly days: "begin" | "end";
}

const DAY_MS = 86_400_000;

/** Reads `30d`, `12h`, `2026-12-31` or an RFC 3339 time. @returns RFC 3339, UTC. @throws UsageError */
export function readMoment(text: string, { now, durations, days }: MomentMeaning): string {
  if (isDuration(text)) return rfc3339(now + parseDuration(text) * (durations === "ahead" ? 1000 : -1000));
  const day = /^(\d{4})-(\d{2})-(\d{2})$/.test(text);
  const whole = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/.test(text);
  const at = day || whole ? Date.parse(text) : NaN;
  // `Date.parse` accepts 31 June as 1 July.
  if (Number.isNaN(at) || (day && !rfc3339(at).startsWith(text))) throw new UsageError(noMoment(text));
  return rfc3339(day && days === "end" ? at + DAY_MS : at);
}

function noMoment(text: string): string {
  return `"${text}" is not a time. Use a format such as 30d, 12h, 2026-12-31 or 2026-12-31T18:00:00Z.`;
}
