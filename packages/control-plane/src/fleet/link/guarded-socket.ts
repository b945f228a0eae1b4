import { EventEmitter } from "node:events";
import type { RawData, WebSocket } from "ws";
import { MAX_UNREAD_BYTES } from "../../telemetry/bounds/node-rate-bounds.ts";
import type { LinkGuard } from "./link-guard.ts";

/** For the closing handshake; a daemon that does not answer it is cut off. */
const CLOSE_MS = 1000;

/** A link's socket as tRPC sees it: messages come through the guard, and none after the link was closed from this side. */
export class GuardedSocket extends EventEmitter {
  readonly #socket: WebSocket;
  readonly #guard: LinkGuard;
  readonly #onUnread: (bytes: number) => void;
  #closing = false;

  constructor(socket: WebSocket, guard: LinkGuard, onUnread: (bytes: number) => void) {
    super();
    this.#socket = socket;
    this.#guard = guard;
    this.#onUnread = onUnread;
    socket.on("message", (data: RawData, isBinary: boolean) => this.#take(data, isBinary));
    socket.on("ping", () => void guard.control());
    socket.on("pong", () => void guard.control());
    socket.on("error", (error: Error) => {
      if ("code" in error && error.code === "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH") guard.tooLarge();
      this.emit("error", error);
    });
    socket.once("close", () => this.emit("close"));
  }

  get readyState(): number {
    return this.#closing ? this.#socket.CLOSING : this.#socket.readyState;
  }

  /** tRPC has no backpressure: a daemon that does not read is cut off before it costs memory. */
  send(data: string): void {
    const { bufferedAmount } = this.#socket;
    if (bufferedAmount <= MAX_UNREAD_BYTES) {
      this.#socket.send(data);
      return;
    }
    this.#onUnread(bufferedAmount);
    this.terminate();
  }

  close(code?: number, reason?: string): void {
    if (this.#closing) return;
    this.#closing = true;
    this.#socket.close(code, reason);
    const cut = setTimeout(() => this.#socket.terminate(), CLOSE_MS);
    cut.unref();
    this.#socket.once("close", () => clearTimeout(cut));
  }

  terminate(): void {
    this.#closing = true;
    this.#socket.terminate();
  }

  #take(data: RawData, isBinary: boolean): void {
    if (this.#closing || !Buffer.isBuffer(data)) return;
    if (this.#guard.message(data, isBinary)) this.emit("message", data, isBinary);
  }
}
