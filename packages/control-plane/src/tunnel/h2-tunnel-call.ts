import { type ClientHttp2Stream, constants, type IncomingHttpHeaders, type IncomingHttpStatusHeader } from "node:http2";
import type { TunnelHandler, TunnelStreamCall, TunnelStreamHandler } from "./tunnel-transport.ts";

/** One write is at most this long: a single huge one overruns HTTP/2's session memory. */
const MAX_WRITE_BYTES = 64 * 1024;

/** One request and its answer inside the tunnel. */
export class H2TunnelCall implements TunnelStreamCall {
  readonly #stream: ClientHttp2Stream;
  /** Undefined once the call is over: Node may keep the stream in memory long after, and with it whatever it leads to. */
  #handler: (TunnelHandler & Partial<TunnelStreamHandler>) | undefined;
  #body: readonly Buffer[];
  #chunk = 0;
  #offset = 0;
  #failure: Error | undefined;

  /** @param body all of it, or null where it is written as it comes. */
  constructor(stream: ClientHttp2Stream, body: readonly Buffer[] | null, handler: TunnelHandler | TunnelStreamHandler) {
    this.#stream = stream;
    this.#handler = handler;
    this.#body = body ?? [];
    stream.on("response", (headers) => this.#onResponse(headers));
    stream.on("data", (chunk: Buffer) => this.#onData(chunk));
    stream.on("end", () => this.#onEnd());
    stream.on("error", (error) => {
      this.#failure = error;
    });
    stream.on("close", () => this.#onClose());
    if (body === null) stream.on("drain", () => this.#handler?.onDrain?.());
    else if (body.length > 0) {
      stream.on("drain", () => this.#writeBody());
      this.#writeBody();
    }
  }

  write(chunk: Buffer): boolean {
    const stream = this.#stream;
    return stream.destroyed || stream.writableEnded || stream.write(chunk);
  }

  end(): void {
    if (!this.#stream.destroyed) this.#stream.end();
  }

  resume(): void {
    this.#stream.resume();
  }

  abort(): void {
    this.#handler = undefined;
    this.#cancel();
  }

  #onResponse(headers: IncomingHttpHeaders & IncomingHttpStatusHeader): void {
    this.#handler?.onHeaders(headers[":status"] ?? 0, headers);
  }

  #onData(chunk: Buffer): void {
    if (this.#handler?.onData(chunk) === false) this.#stream.pause();
  }

  /** A reset stream "ends" too; only one without a code was ended by the other side. */
  #onEnd(): void {
    const handler = this.#handler;
    if (handler === undefined || this.#stream.rstCode !== constants.NGHTTP2_NO_ERROR) return;
    this.#handler = undefined;
    handler.onEnd();
    // The answer may come before the whole request was taken: the rest of it is of no use.
    if (!this.#stream.writableEnded) this.#cancel();
  }

  #onClose(): void {
    this.#body = [];
    const handler = this.#handler;
    this.#handler = undefined;
    handler?.onError(this.#failure ?? new Error(`the tunnel's stream was reset (code ${this.#stream.rstCode})`));
  }

  #cancel(): void {
    this.#body = [];
    // `close` would first end a half-sent body as if it were whole.
    if (this.#stream.writableEnded) this.#stream.close(constants.NGHTTP2_CANCEL);
    else this.#stream.destroy(new Error("the call was aborted"));
  }

  #writeBody(): void {
    const stream = this.#stream;
    while (!stream.destroyed && !stream.writableEnded) {
      const chunk = this.#body[this.#chunk];
      if (chunk === undefined) {
        this.#body = [];
        stream.end();
        return;
      }
      const piece = chunk.subarray(this.#offset, this.#offset + MAX_WRITE_BYTES);
      this.#offset += piece.length;
      if (this.#offset >= chunk.length) {
        this.#chunk++;
        this.#offset = 0;
      }
      if (piece.length > 0 && !stream.write(piece)) return;
    }
  }
}

/** A call on a tunnel that is gone: fails after the caller has it in hand. */
export function lostCall(handler: TunnelHandler, error: Error): TunnelStreamCall {
  let aborted = false;
  setImmediate(() => {
    if (!aborted) handler.onError(error);
  });
  return {
    write: () => true,
    end: () => undefined,
    resume: () => undefined,
    abort: () => {
      aborted = true;
    },
  };
}
