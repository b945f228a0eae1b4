import { Transform, type TransformCallback } from "node:stream";
import { parseJson } from "@fairlead/protocol/values/parse-json";
import { GrowingBuffer } from "@fairlead/wire/growing-buffer";
import { z } from "zod";

/** Output formats of node logs. All take JSON lines of `{at, stream, text}`. */

export const LOG_FORMATS = ["text", "jsonl", "events"] as const;
export type LogFormat = (typeof LOG_FORMATS)[number];

export const LOG_TYPES: Readonly<Record<LogFormat, string>> = {
  text: "text/plain; charset=utf-8",
  jsonl: "application/x-ndjson; charset=utf-8",
  events: "text/event-stream; charset=utf-8",
};

/** Proxies close connections after a minute of silence. */
const KEEP_ALIVE_MS = 15_000;
const LINE_FEED = 0x0a;
/** Daemons cut lines at 64 KiB; JSON escaping makes that six times as long at most. */
const MAX_LINE_BYTES = 512 * 1024;
/** `{at, stream, text}` */
const LINE_LIMITS = { maxDepth: 1, maxBytes: MAX_LINE_BYTES };
const lineSchema = z.object({ at: z.string(), stream: z.enum(["stdout", "stderr"]), text: z.string() });

/** A daemon sent something other than a log line. */
export class MalformedLogLine extends Error {
  override readonly name = "MalformedLogLine";
}

/** By `Accept`: events, JSON lines, or by default plain text. */
export function logFormatOf(accept: string | undefined): LogFormat {
  if (accept?.includes("text/event-stream")) return "events";
  return accept?.includes("application/x-ndjson") || accept?.includes("application/jsonl") ? "jsonl" : "text";
}

/** Converts complete lines and buffers the incomplete one. An invalid line ends the stream with an error. */
export class LogFormatter extends Transform {
  readonly #format: LogFormat;
  readonly #timer: NodeJS.Timeout | null;
  readonly #pending = new GrowingBuffer();

  constructor(format: LogFormat) {
    super();
    this.#format = format;
    this.#timer = format === "events" ? setInterval(() => this.#keepAlive(), KEEP_ALIVE_MS).unref() : null;
  }

  override _transform(chunk: Buffer, _encoding: string, callback: TransformCallback): void {
    try {
      this.#take(chunk);
      callback();
    } catch (error) {
      callback(
        error instanceof MalformedLogLine ? error : new MalformedLogLine("a line that is not JSON", { cause: error }),
      );
    }
  }

  #take(chunk: Buffer): void {
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, start)) {
      const last = chunk.subarray(start, end);
      const line = this.#pending.length === 0 ? last : this.#pending.append(last);
      this.#pending.clear();
      this.push(told(line, this.#format));
      start = end + 1;
    }
    if (start < chunk.length) this.#pending.append(chunk.subarray(start));
    if (this.#pending.length > MAX_LINE_BYTES) throw new MalformedLogLine("a line that is too long");
  }

  override _flush(callback: TransformCallback): void {
    if (this.#format === "events") this.push("data: [DONE]\n\n");
    callback();
  }

  override _destroy(error: Error | null, callback: (error: Error | null) => void): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    callback(error);
  }

  #keepAlive(): void {
    if (!this.writableEnded && this.readableLength === 0) this.push(": still here\n\n");
  }
}

function told(bytes: Buffer, format: LogFormat): string {
  const { at, stream, text } = lineSchema.parse(parseJson(bytes, LINE_LIMITS));
  if (format === "text") return `${text}\n`;
  // Serialized again, because whitespace in the original could end an event.
  const json = JSON.stringify({ at, stream, text });
  return format === "jsonl" ? `${json}\n` : `data: ${json}\n\n`;
}
