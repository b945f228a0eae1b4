import type { LogLine, LogOptions } from "../container-runtime.ts";

/** Parses Docker's log stream: frames of one stream each; every line starts with its time. */

const HEADER = 8;
/** Longer lines are split, to limit memory. */
const MAX_LINE = 65_536;
const LINE_FEED = 0x0a;

export function logQuery({ since, tail, follow }: LogOptions): { since?: string; tail?: number; follow: boolean } {
  return {
    follow,
    // Docker accepts fractional seconds.
    ...(since === null ? {} : { since: (Date.parse(since) / 1000).toFixed(3) }),
    ...(tail === null ? {} : { tail }),
  };
}

/**
 * The lines of a container's logs, in order per stream, with backpressure.
 * @param output a stream, or a buffer with everything if not following.
 */
export async function* linesOf(output: AsyncIterable<Buffer | string> | Buffer): AsyncIterable<LogLine> {
  const pending: Record<LogLine["stream"], Buffer> = { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) };
  for await (const { name, bytes } of framesOf(Buffer.isBuffer(output) ? [output] : output)) {
    const { lines, rest } = split(Buffer.concat([pending[name], bytes]));
    pending[name] = rest;
    for (const line of lines) yield lineOf(name, line);
  }
  for (const name of ["stdout", "stderr"] as const) {
    if (pending[name].length > 0) yield lineOf(name, pending[name]);
  }
}

interface Frame {
  readonly name: LogLine["stream"];
  readonly bytes: Buffer;
}

/** One byte stream, three bytes padding, four bytes length, then the text. */
async function* framesOf(stream: AsyncIterable<Buffer | string> | Iterable<Buffer | string>): AsyncIterable<Frame> {
  let held: Buffer = Buffer.alloc(0);
  for await (const piece of stream) {
    held = Buffer.concat([held, typeof piece === "string" ? Buffer.from(piece, "latin1") : piece]);
    for (let end = endOf(held); end <= held.length; end = endOf(held)) {
      yield { name: held[0] === 2 ? "stderr" : "stdout", bytes: held.subarray(HEADER, end) };
      held = held.subarray(end);
    }
  }
}

function endOf(held: Buffer): number {
  return held.length < HEADER ? Number.POSITIVE_INFINITY : HEADER + held.readUInt32BE(4);
}

function split(text: Buffer): { lines: Buffer[]; rest: Buffer } {
  const lines: Buffer[] = [];
  let start = 0;
  for (let end = text.indexOf(LINE_FEED); end >= 0; end = text.indexOf(LINE_FEED, start)) {
    lines.push(text.subarray(start, end));
    start = end + 1;
  }
  for (; text.length - start > MAX_LINE; start += MAX_LINE) lines.push(text.subarray(start, start + MAX_LINE));
  return { lines, rest: text.subarray(start) };
}

function lineOf(stream: LogLine["stream"], bytes: Buffer): LogLine {
  const line = bytes.toString("utf8").replace(/\r$/, "");
  const [, at = "", text = line] = /^(\d{4}-\d\d-\d\dT[\d:.]+Z) (.*)$/s.exec(line) ?? [];
  return { at, stream, text };
}
