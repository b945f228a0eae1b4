import type { IncomingHttpHeaders } from "node:http";
import type { Socket } from "node:net";
import { type AnswerParts, Http1Answer, MalformedAnswer } from "./http1-answer.ts";
import { PieceWriter } from "./piece-writer.ts";

/** A request as it is written. */
export interface RenderedRequest {
  readonly method: string;
  /** Latin-1, with the empty line. It says how the body is framed. */
  readonly head: string;
  /** What is there already; or the bytes that come by `write`, in chunks where their number is not known. */
  readonly body: readonly Buffer[] | number | "chunked";
}

/** Whose answer a connection brings. Nothing is told after `onEnd` or `onLost`. */
export interface ConnectionCall {
  onHeaders(status: number, headers: IncomingHttpHeaders): void;
  /** @returns false to pause. */
  onData(chunk: Buffer): boolean;
  onEnd(): void;
  onLost(cause: Error): void;
  /** What was written of the body has left: `write` may go on. */
  onDrain?(): void;
}

export interface ConnectionOwner {
  /** @returns whether a connection may carry one more request after an answer with these headers. */
  keepsAfter(headers: IncomingHttpHeaders): boolean;
  /** The connection may carry one more request. */
  onFree(connection: Http1Connection): void;
  onGone(connection: Http1Connection): void;
}

/** As long as servers keep connections that do not say, and a bit less (Node: five seconds). */
const IDLE_MS = 4000;
const MAX_IDLE_MS = 600_000;
/** A server that is about to close must not be sent a request any more. */
const IDLE_MARGIN_MS = 1000;

/** One connection to an upstream: one request at a time. */
export class Http1Connection implements AnswerParts {
  readonly #socket: Socket;
  readonly #owner: ConnectionOwner;
  readonly #writer: PieceWriter;
  readonly #answer = new Http1Answer(this);
  #call: ConnectionCall | null = null;
  /** Bytes that the request's body still has to bring; endless while it is chunked. */
  #bodyLeft = 0;
  #idleMs = IDLE_MS;
  /** As far as the owner is asked. */
  #isKept = true;
  #cause: Error | null = null;
  /** The other side will say nothing more; what it said may still wait for a paused reader. */
  #isEnded = false;
  #isGone = false;

  constructor(socket: Socket, owner: ConnectionOwner) {
    this.#socket = socket;
    this.#owner = owner;
    this.#writer = new PieceWriter(socket);
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

  /** How long it may wait for its next request. */
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
   * The next piece of the body. What comes after an early answer is dropped; a body that is longer than it says ends the connection.
   * @returns false when it is time to wait for `onDrain`.
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

  /** The body is whole; one that is shorter than it says ends the connection. */
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
    // The rest may have filled its reader anew.
    if (this.#answer.isPaused) return;
    if (this.#isEnded || this.#isGone) this.#finish();
    else this.#socket.resume();
  }

  /** Ends whatever runs on it; its call is told nothing more. */
  abort(): void {
    this.#call = null;
    this.#answer.stop();
    this.#socket.destroy();
  }

  /** As `abort`, but its call is told. */
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
    // An answer that came before the whole request was sent leaves the rest of it on the way.
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
  }

  #refuse(error: unknown): void {
    if (!(error instanceof MalformedAnswer)) throw error;
    this.destroy(error);
  }

  /** All that the other side said has been told. */
  #finish(): void {
    if (this.#answer.close()) return;
    this.destroy(new Error("the other side has closed the connection"));
    if (this.#isGone) this.#lose();
  }

  #closed(): void {
    this.#isGone = true;
    this.#owner.onGone(this);
    if (!this.#answer.isPaused) {
      this.#lose();
      return;
    }
    // What it said waits for a reader that is not ready for it: its end too, or that there is none.
    const rest: unknown = this.#socket.read();
    if (rest instanceof Buffer) this.#answer.push(rest);
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
