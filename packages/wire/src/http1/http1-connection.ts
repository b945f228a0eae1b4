import type { IncomingHttpHeaders } from "node:http";
import type { Socket } from "node:net";
import { atEndOfTurn } from "../end-of-turn.ts";
import { type AnswerParts, Http1Answer, MalformedAnswer } from "./http1-answer.ts";

/** A request as it is written. */
export interface RenderedRequest {
  readonly method: string;
  /** Latin-1, with the empty line. */
  readonly head: string;
  readonly body: readonly Buffer[];
}

/** Whose answer a connection brings. Nothing is told after `onEnd` or `onLost`. */
export interface ConnectionCall {
  onHeaders(status: number, headers: IncomingHttpHeaders): void;
  /** @returns false to pause. */
  onData(chunk: Buffer): boolean;
  onEnd(): void;
  onLost(cause: Error): void;
}

export interface ConnectionOwner {
  /** The connection may carry one more request. */
  onFree(connection: Http1Connection): void;
  onGone(connection: Http1Connection): void;
}

/** Up to here a request goes out as one piece, in one write. */
const ONE_PIECE_BYTES = 16_384;
/** As long as servers keep connections that do not say, and a bit less (Node: five seconds). */
const IDLE_MS = 4000;
const MAX_IDLE_MS = 600_000;
/** A server that is about to close must not be sent a request any more. */
const IDLE_MARGIN_MS = 1000;

/** One connection to an upstream: one request at a time. */
export class Http1Connection implements AnswerParts {
  readonly #socket: Socket;
  readonly #owner: ConnectionOwner;
  readonly #answer = new Http1Answer(this);
  #call: ConnectionCall | null = null;
  #idleMs = IDLE_MS;
  #cause: Error | null = null;
  /** The other side will say nothing more; what it said may still wait for a paused reader. */
  #isEnded = false;
  #isGone = false;

  constructor(socket: Socket, owner: ConnectionOwner) {
    this.#socket = socket;
    this.#owner = owner;
    socket.setNoDelay(true);
    socket.on("data", (bytes: Buffer) => this.#take(bytes));
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
    const bytes = body.reduce((sum, piece) => sum + piece.length, head.length);
    if (bytes <= ONE_PIECE_BYTES) {
      const piece = onePiece(head, body, bytes);
      atEndOfTurn(() => {
        if (!this.#socket.destroyed) this.#socket.write(piece);
      });
      return;
    }
    this.#socket.cork();
    this.#socket.write(head, "latin1");
    for (const piece of body) this.#socket.write(piece);
    this.#socket.uncork();
  }

  resume(): void {
    this.#guarded(() => this.#answer.resume());
    // The rest may have filled its reader anew.
    if (this.#answer.isPaused) return;
    if (this.#isEnded) this.#finish();
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
    if (again && this.#socket.writableLength === 0 && this.isOpen) this.#owner.onFree(this);
    else this.#socket.destroy();
    call?.onEnd();
  }

  #take(bytes: Buffer): void {
    this.#guarded(() => this.#answer.push(bytes));
  }

  #guarded(read: () => void): void {
    try {
      read();
    } catch (error) {
      if (!(error instanceof MalformedAnswer)) throw error;
      this.destroy(error);
    }
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
    // The end of a whole answer may come while its reader is not ready for it.
    if (this.#cause === null && this.#isEnded && this.#answer.isPaused) return;
    this.#lose();
  }

  #lose(): void {
    const call = this.#call;
    this.#call = null;
    call?.onLost(this.#cause ?? new Error("the connection is closed"));
  }
}

function onePiece(head: string, body: readonly Buffer[], bytes: number): Buffer {
  const piece = Buffer.allocUnsafe(bytes);
  let at = piece.write(head, 0, "latin1");
  for (const part of body) at += part.copy(piece, at);
  return piece;
}

/** `timeout=5, max=100` */
function idleMsOf(header: string | readonly string[] | undefined): number {
  const [, seconds] = typeof header === "string" ? (/\btimeout=(\d{1,6})/i.exec(header) ?? []) : [];
  if (seconds === undefined) return IDLE_MS;
  return Math.max(0, Math.min(Number(seconds) * 1000, MAX_IDLE_MS) - IDLE_MARGIN_MS);
}
