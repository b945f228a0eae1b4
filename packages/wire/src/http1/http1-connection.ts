import type { IncomingHttpHeaders } from "node:http";
import type { Socket } from "node:net";
import { TurnShare } from "../turn-share.ts";
import { type AnswerParts, Http1Answer } from "./http1-answer.ts";
import { PieceWriter } from "./piece-writer.ts";

/** A serialized request. */
export interface RenderedRequest {
  readonly method: string;
  /** Latin-1, including the empty line; declares the body's framing. */
  readonly head: string;
  /** The complete body; or the number of bytes passed to `write`; or `chunked` if unknown. */
  readonly body: readonly Buffer[] | number | "chunked";
}

/** Receives the response of one request. Nothing is called after `onEnd` or `onLost`. */
export interface ConnectionCall {
  onHeaders(status: number, headers: IncomingHttpHeaders): void;
  /** @returns false to pause. */
  onData(chunk: Buffer): boolean;
  onEnd(): void;
  onLost(cause: Error): void;
  /** Written bytes were sent; `write` may continue. */
  onDrain?(): void;
}

export interface ConnectionOwner {
  /** @returns whether a connection can be reused after a response with these headers. */
  keepsAfter(headers: IncomingHttpHeaders): boolean;
  /** The connection can be reused. */
  onFree(connection: Http1Connection): void;
  onGone(connection: Http1Connection): void;
}

/** Slightly less than the idle timeout of servers that do not state one (Node: five seconds). */
const IDLE_MS = 4000;
const MAX_IDLE_MS = 600_000;
/** Avoids sending a request to a server that is about to close. */
const IDLE_MARGIN_MS = 1000;

/** One connection to an upstream; one request at a time. */
export class Http1Connection implements AnswerParts {
  readonly #socket: Socket;
  readonly #owner: ConnectionOwner;
  readonly #writer: PieceWriter;
  readonly #share: TurnShare;
  readonly #answer = new Http1Answer(this);
  #call: ConnectionCall | null = null;
  /** Body bytes still to be written; infinite for chunked bodies. */
  #bodyLeft = 0;
  #idleMs = IDLE_MS;
  /** The owner's view: whether it keeps the connection. */
  #isKept = true;
  #cause: Error | null = null;
  /** The other side closed; received bytes may still wait for a paused reader. */
  #isEnded = false;
  #isGone = false;

  constructor(socket: Socket, owner: ConnectionOwner) {
    this.#socket = socket;
    this.#owner = owner;
    this.#writer = new PieceWriter(socket);
    this.#share = new TurnShare(socket, () => !this.#answer.isPaused);
    socket.setNoDelay(true);
    socket.on("data", (bytes: Buffer) => this.#take(bytes));
    socket.on("drain", () => this.#call?.onDrain?.());
    socket.on("end", () => {
      this.#isEnded = true;
      if (!this.#answer.isPaused) this.#finish();
    });
    socket.on("error", (error: Error) => {
      this.#cause ??= error;
    });
    socket.on("close", () => this.#closed());
  }

  /** How long it may stay idle. */
  get idleMs(): number {
    return this.#idleMs;
  }

  get isOpen(): boolean {
    return !this.#socket.destroyed && this.#socket.writable;
  }

  send({ method, head, body }: RenderedRequest, call: ConnectionCall): void {
    this.#call = call;
    this.#answer.expect(method === "HEAD");
    if (typeof body !== "object") {
      this.#bodyLeft = body === "chunked" ? Number.POSITIVE_INFINITY : body;
      this.#writer.write(head);
      return;
    }
    this.#bodyLeft = 0;
    this.#socket.cork();
    this.#writer.write(head);
    for (const piece of body) this.#writer.write(piece);
    this.#socket.uncork();
  }

  /**
   * Writes the next piece of the body. Pieces after an early response are dropped; a body longer than declared aborts the
   * connection.
   * @returns false when the caller should wait for `onDrain`.
   */
  write(chunk: Buffer): boolean {
    if (this.#call === null || !this.isOpen || chunk.length === 0) return true;
    if (chunk.length > this.#bodyLeft) {
      this.destroy(new Error("the request's body is longer than it says"));
      return true;
    }
    this.#bodyLeft -= chunk.length;
    if (Number.isFinite(this.#bodyLeft)) this.#writer.write(chunk);
    else {
      this.#writer.write(`${chunk.length.toString(16)}\r\n`);
      this.#writer.write(chunk);
      this.#writer.write("\r\n");
    }
    return !this.#socket.writableNeedDrain;
  }

  /** Ends the body; one shorter than declared aborts the connection. */
  endBody(): void {
    if (this.#call === null || !this.isOpen || this.#bodyLeft === 0) return;
    if (Number.isFinite(this.#bodyLeft)) {
      this.destroy(new Error("the request's body is shorter than it says"));
      return;
    }
    this.#bodyLeft = 0;
    this.#writer.write("0\r\n\r\n");
  }

  resume(): void {
    if (!this.#answer.isPaused) return;
    try {
      this.#answer.resume();
    } catch (error) {
      this.#refuse(error);
    }
    // The rest may have filled the reader again.
    if (this.#answer.isPaused) return;
    if (this.#isEnded || this.#isGone) this.#finish();
    else if (!this.#share.isSpent) this.#socket.resume();
  }

  /** Aborts the current request without notifying its call. */
  abort(): void {
    this.#call = null;
    this.#answer.stop();
    this.#socket.destroy();
  }

  /** Like `abort`, but notifies the call. */
  destroy(cause: Error): void {
    this.#cause ??= cause;
    this.#answer.stop();
    this.#socket.destroy();
  }

  onHeaders(status: number, headers: IncomingHttpHeaders): void {
    this.#idleMs = idleMsOf(headers["keep-alive"]);
    this.#isKept = this.#owner.keepsAfter(headers);
    this.#call?.onHeaders(status, headers);
  }

  onData(chunk: Buffer): boolean {
    if (this.#call === null || this.#call.onData(chunk)) return true;
    this.#socket.pause();
    return false;
  }

  onEnd(again: boolean): void {
    const call = this.#call;
    this.#call = null;
    // After an early response, part of the request is still being sent.
    const isSent = this.#bodyLeft === 0 && this.#writer.isEmpty;
    if (again && this.#isKept && isSent && this.isOpen) this.#owner.onFree(this);
    else this.#socket.destroy();
    call?.onEnd();
  }

  #take(bytes: Buffer): void {
    try {
      this.#answer.push(bytes);
    } catch (error) {
      this.#refuse(error);
    }
    this.#share.took(bytes.length);
  }

  /** Includes exceptions from the call's own callbacks: uncaught, one would end the process and all other calls. */
  #refuse(error: unknown): void {
    this.destroy(error instanceof Error ? error : new Error("the call failed", { cause: error }));
  }

  /** All received bytes were processed. */
  #finish(): void {
    try {
      if (this.#answer.close()) return;
    } catch (error) {
      this.#refuse(error);
      return;
    }
    this.destroy(new Error("the other side has closed the connection"));
    if (this.#isGone) this.#lose();
  }

  #closed(): void {
    this.#isGone = true;
    this.#owner.onGone(this);
    // The last bytes, and the end itself, may wait for the next turn or for a paused reader.
    const rest: unknown = this.#socket.read();
    if (rest instanceof Buffer) this.#take(rest);
    if (!this.#answer.isPaused) this.#lose();
  }

  #lose(): void {
    const call = this.#call;
    this.#call = null;
    call?.onLost(this.#cause ?? new Error("the connection is closed"));
  }
}

/** `timeout=5, max=100` */
function idleMsOf(header: string | readonly string[] | undefined): number {
  const [, seconds] = typeof header === "string" ? (/\btimeout=(\d{1,6})/i.exec(header) ?? []) : [];
  if (seconds === undefined) return IDLE_MS;
  return Math.max(0, Math.min(Number(seconds) * 1000, MAX_IDLE_MS) - IDLE_MARGIN_MS);
}
