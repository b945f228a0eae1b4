import { Transform, type TransformCallback } from "node:stream";

/** The forms in which the lines of a node's logs are told. Each takes JSON lines of `{at, stream, text}`. */

export const LOG_FORMATS = ["text", "jsonl", "events"] as const;
export type LogFormat = (typeof LOG_FORMATS)[number];

export const LOG_TYPES: Readonly<Record<LogFormat, string>> = {
  text: "text/plain; charset=utf-8",
  jsonl: "application/x-ndjson; charset=utf-8",
  events: "text/event-stream; charset=utf-8",
};

/** Proxies close what is silent for a minute. */
const KEEP_ALIVE_MS = 15_000;
const LINE_FEED = 0x0a;

/** By `Accept`: events, JSON lines, or plain text where nobody asks for either. */
export function logFormatOf(accept: string | undefined): LogFormat {
  if (accept?.includes("text/event-stream")) return "events";
  return accept?.includes("application/x-ndjson") || accept?.includes("application/jsonl") ? "jsonl" : "text";
}

/** Rewrites whole lines; one that is still coming is kept. Lines are at most as long as daemons make them. */
export class LogFormatter extends Transform {
  readonly #format: LogFormat;
  readonly #timer: NodeJS.Timeout | null;
  #pending: Buffer[] = [];

  constructor(format: LogFormat) {
    super();
    this.#format = format;
    this.#timer = format === "events" ? setInterval(() => this.#keepAlive(), KEEP_ALIVE_MS).unref() : null;
  }

  override _transform(chunk: Buffer, _encoding: string, callback: TransformCallback): void {
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, start)) {
      const line = Buffer.concat([...this.#pending.splice(0), chunk.subarray(start, end)]);
      this.push(told(line.toString("utf8"), this.#format));
      start = end + 1;
    }
    if (start < chunk.length) this.#pending.push(chunk.subarray(start));
    callback();
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

function told(json: string, format: LogFormat): string {
  if (format === "jsonl") return `${json}\n`;
  if (format === "events") return `data: ${json}\n\n`;
  const { text } = JSON.parse(json) as { readonly text: string };
  return `${text}\n`;
}
