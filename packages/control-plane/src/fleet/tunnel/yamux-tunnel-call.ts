import { answerHead, HeadReader, HeadRefused, HeadTooLarge, type TunnelAnswerHead } from "@fairlead/wire/tunnel-heads";
import type { TunnelHandler, TunnelStreamCall, TunnelStreamHandler } from "@fairlead/wire/tunnel-transport";
import { HeldTooMuch, type YamuxStream, type YamuxStreamHandler } from "@fairlead/wire/yamux/stream";
import { answerLength } from "./answer-length.ts";
import { BodyPieces } from "./body-pieces.ts";
import type { TunnelOptions } from "./tunnel-options.ts";

export interface YamuxCallOptions {
  /** CONNECT for a WebSocket. */
  readonly method: string;
  readonly head: Buffer;
  /** The complete body, or null if it is streamed. */
  readonly body: readonly Buffer[] | null;
  readonly handler: TunnelHandler & Partial<TunnelStreamHandler>;
  /** Called once, when the call is completely finished. */
  readonly onOver: () => void;
  readonly bounds: TunnelOptions["bounds"];
}

/** One request and response on a separate stream. */
export class YamuxTunnelCall implements TunnelStreamCall, YamuxStreamHandler {
  readonly #stream: YamuxStream;
  readonly #method: string;
  readonly #onOver: () => void;
  readonly #bounds: TunnelOptions["bounds"];
  readonly #body: BodyPieces | null;
  /** Undefined once the call has ended. */
  #handler: YamuxCallOptions["handler"] | undefined;
  /** Null once the response head was delivered. */
  #head: HeadReader<TunnelAnswerHead> | null = new HeadReader(answerHead);
  /** Length of the response body; null if only its end is known. */
  #left: number | null = null;
  #isBodyWhole = false;

  constructor(stream: YamuxStream, { method, head, body, handler, onOver, bounds }: YamuxCallOptions) {
    this.#stream = stream;
    this.#method = method;
    this.#handler = handler;
    this.#onOver = onOver;
    this.#bounds = bounds;
    this.#body = body === null ? null : new BodyPieces(body);
    stream.handle(this);
    if (body?.length === 0) this.#endWith(head);
    else stream.write(head);
    this.#writeBody();
  }

  write(chunk: Buffer): boolean {
    return this.#stream.write(chunk);
  }

  end(): void {
    this.#endWith();
  }

  resume(): void {
    this.#stream.resume();
  }

  abort(): void {
    this.#handler = undefined;
    this.#stream.reset();
  }

  onData(chunk: Buffer): boolean {
    if (this.#head === null) return this.#tell(chunk);
    try {
      const read = this.#head.push(chunk);
      if (read === null) return true;
      this.#left = answerLength(this.#method, read.head);
      this.#head = null;
      this.#handler?.onHeaders(read.head.status, read.head.headers);
      return read.rest.length === 0 || this.#tell(read.rest);
    } catch (error) {
      if (!(error instanceof HeadRefused)) throw error;
      if (error instanceof HeadTooLarge) this.#bounds.reached("tunnel_head_bytes");
      this.#fail(error);
      return true;
    }
  }

  onEnd(): void {
    if (this.#head !== null) this.#fail(new HeadRefused("a response without a head"));
    else if (this.#left !== null && this.#left > 0)
      this.#fail(new Error("a response shorter than its declared length"));
    else {
      const handler = this.#handler;
      this.#handler = undefined;
      handler?.onEnd();
      // The response may arrive before the whole request was sent; the rest is dropped.
      this.#stream.reset();
    }
  }

  onDrain(): void {
    if (this.#body === null) this.#handler?.onDrain?.();
    else this.#writeBody();
  }

  onClose(failure: Error | null): void {
    const handler = this.#handler;
    this.#handler = undefined;
    this.#body?.drop();
    this.#onOver();
    if (failure instanceof HeldTooMuch) this.#bounds.reached("tunnel_held_bytes");
    handler?.onError(failure ?? new Error("the call ended before its response"));
  }

  #tell(chunk: Buffer): boolean {
    if (this.#left !== null) {
      this.#left -= chunk.length;
      if (this.#left < 0) this.#fail(new Error("a response longer than its declared length"));
    }
    return this.#handler?.onData(chunk) ?? true;
  }

  #writeBody(): void {
    if (this.#body === null) return;
    while (!this.#isBodyWhole) {
      const piece = this.#body.next();
      if (piece === undefined) this.#endWith();
      else if (!this.#stream.write(piece)) return;
    }
  }

  #endWith(last?: Buffer): void {
    this.#isBodyWhole = true;
    this.#stream.end(last);
  }

  #fail(error: Error): void {
    const handler = this.#handler;
    this.#handler = undefined;
    this.#stream.reset();
    handler?.onError(error);
  }
}
