import type { LogLine, LogOptions } from "./container-runtime.ts";

/** A container's output as Docker streams it: frames of one stream each, in which every line begins with its time. */

const HEADER = 8;
/** A line that never ends must not fill the memory; its rest comes as a line of its own. */
const MAX_LINE = 65_536;
const LINE_FEED = 0x0a;

export function logQuery({ since, tail, follow }: LogOptions): { since?: string; tail?: number; follow: boolean } {
  return {
    follow,
    // Docker takes seconds with a fraction.
    ...(since === null ? {} : { since: (Date.parse(since) / 1000).toFixed(3) }),
    ...(tail === null ? {} : { tail }),
  };
}

/**
 * The lines of a container's output; those of one stream keep their order. Reads no faster than its reader.
 * @param output a stream, or, where nothing was waited for, all of it at once.
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

/** One byte of stream, three of padding, four of length, then the text. */
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
