import { type ClientHttp2Stream, constants, type IncomingHttpHeaders, type IncomingHttpStatusHeader } from "node:http2";
import { BodyPieces } from "./body-pieces.ts";
import type { TunnelHandler, TunnelStreamCall, TunnelStreamHandler } from "./tunnel-transport.ts";

/** One request and its answer inside the tunnel. */
export class H2TunnelCall implements TunnelStreamCall {
  readonly #stream: ClientHttp2Stream;
  /** Undefined once the call is over: Node may keep the stream in memory long after, and with it whatever it leads to. */
  #handler: (TunnelHandler & Partial<TunnelStreamHandler>) | undefined;
  readonly #body: BodyPieces;
  #failure: Error | undefined;

  /** @param body all of it, or null where it is written as it comes. */
  constructor(stream: ClientHttp2Stream, body: readonly Buffer[] | null, handler: TunnelHandler | TunnelStreamHandler) {
    this.#stream = stream;
    this.#handler = handler;
    this.#body = new BodyPieces(body ?? []);
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
    this.#body.drop();
    const handler = this.#handler;
    this.#handler = undefined;
    handler?.onError(this.#failure ?? new Error(`the tunnel's stream was reset (code ${this.#stream.rstCode})`));
  }

  #cancel(): void {
    this.#body.drop();
    // `close` would first end a half-sent body as if it were whole.
    if (this.#stream.writableEnded) this.#stream.close(constants.NGHTTP2_CANCEL);
    else this.#stream.destroy(new Error("the call was aborted"));
  }

  #writeBody(): void {
    const stream = this.#stream;
    while (!stream.destroyed && !stream.writableEnded) {
      const piece = this.#body.next();
      if (piece === undefined) stream.end();
      else if (!stream.write(piece)) return;
    }
  }
}
