const LF = 0x0a;
const CR = 0x0d;

/** The last three bytes of an event stream, the newest lowest: enough to know whether it stands between two events. */
export type Tail = number;

/** A stream begins between events. */
export const STREAM_START: Tail = (LF << 8) | LF;

export function tailAfter(tail: Tail, bytes: Buffer, end = bytes.length): Tail {
  let after = tail;
  for (let at = Math.max(0, end - 3); at < end; at++) after = ((after << 8) | (bytes[at] ?? 0)) & 0xffffff;
  return after;
}

/** Line ends are LF, CR or CRLF; an event ends with an empty line. A CR after an LF may be half of a CRLF. */
export function isBetweenEvents(tail: Tail): boolean {
  const last = tail & 0xff;
  const before = (tail >> 8) & 0xff;
  if (last === CR) return before === CR;
  if (last !== LF) return false;
  if (before !== CR) return before === LF;
  const third = tail >> 16;
  return third === LF || third === CR;
}

/** @returns where the last event in these bytes ends, or 0. @param tail of what came before them. */
export function lastEventEnd(tail: Tail, bytes: Buffer): number {
  for (let end = bytes.length; end > 0; end--) if (endsAt(tail, bytes, end)) return end;
  return 0;
}

/** @returns where the first event in these bytes ends, or 0. @param tail of what came before them. */
export function firstEventEnd(tail: Tail, bytes: Buffer): number {
  for (let end = 1; end <= bytes.length; end++) if (endsAt(tail, bytes, end)) return end;
  return 0;
}

function endsAt(tail: Tail, bytes: Buffer, end: number): boolean {
  const last = bytes[end - 1];
  return (last === LF || last === CR) && isBetweenEvents(tailAfter(tail, bytes, end));
}
