import { type AnswerHead, answerHead, HeadReader, HeadRefused } from "@fairlead/wire/tunnel-heads";
import type { YamuxStream, YamuxStreamHandler } from "@fairlead/wire/yamux/stream";
import { answerLength } from "./answer-length.ts";
import { BodyPieces } from "./body-pieces.ts";
import type { TunnelHandler, TunnelStreamCall, TunnelStreamHandler } from "./tunnel-transport.ts";

export interface YamuxCallOptions {
  /** CONNECT for a WebSocket. */
  readonly method: string;
  readonly head: Buffer;
  /** All of it, or null where it is written as it comes. */
  readonly body: readonly Buffer[] | null;
  readonly handler: TunnelHandler & Partial<TunnelStreamHandler>;
  /** Called once, when nothing of the call is left. */
  readonly onOver: () => void;
}

/** One request and its answer on a stream of their own. */
export class YamuxTunnelCall implements TunnelStreamCall, YamuxStreamHandler {
  readonly #stream: YamuxStream;
  readonly #method: string;
  readonly #onOver: () => void;
  readonly #body: BodyPieces | null;
  /** Undefined once the call is over. */
  #handler: YamuxCallOptions["handler"] | undefined;
  /** Null once the answer's head was told. */
  #head: HeadReader<AnswerHead> | null = new HeadReader(answerHead);
  /** Of the answer's body; null where only its end tells. */
  #left: number | null = null;
  #isBodyWhole = false;

  constructor(stream: YamuxStream, { method, head, body, handler, onOver }: YamuxCallOptions) {
    this.#stream = stream;
    this.#method = method;
    this.#handler = handler;
    this.#onOver = onOver;
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
      this.#fail(error);
      return true;
    }
  }

  onEnd(): void {
    if (this.#head !== null) this.#fail(new HeadRefused("an answer without a head"));
    else if (this.#left !== null && this.#left > 0) this.#fail(new Error("an answer that is shorter than it said"));
    else {
      const handler = this.#handler;
      this.#handler = undefined;
      handler?.onEnd();
      // The answer may come before the whole request was taken: the rest of it is of no use.
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
    handler?.onError(failure ?? new Error("the call has ended before its answer"));
  }

  #tell(chunk: Buffer): boolean {
    if (this.#left !== null) {
      this.#left -= chunk.length;
      if (this.#left < 0) this.#fail(new Error("an answer that is longer than it said"));
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
