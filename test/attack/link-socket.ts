import { LINK_PATH } from "@fairlead/protocol/daemon-link";
import { WebSocket } from "ws";
import type { StageNode } from "./facts.ts";

const WAIT_MS = 4000;
/** Written and not yet sent: more costs the attacker's own memory. */
const MOST_BUFFERED = 8 * 1024 * 1024;

/** A daemon link as bytes: it sends what it is given, in what order it likes, and need not read. */
export class LinkSocket {
  readonly #socket: WebSocket;
  #id = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
  }

  /** @returns null where the server does not let it in. */
  static open({ identity, identityToken }: StageNode, localAddress: string): Promise<LinkSocket | null> {
    const url = identity.platformUrl.replace("http", "ws") + LINK_PATH(identity.nodeId);
    const headers = { authorization: `Bearer ${identityToken}` };
    const socket = new WebSocket(url, { headers, localAddress, perMessageDeflate: false, handshakeTimeout: WAIT_MS });
    return new Promise((resolve) => {
      socket.on("error", () => resolve(null));
      socket.on("close", () => resolve(null));
      socket.on("open", () => resolve(new LinkSocket(socket)));
    });
  }

  get isOpen(): boolean {
    return this.#socket.readyState === WebSocket.OPEN;
  }

  /** One procedure of the link's router. */
  request(method: "query" | "mutation" | "subscription", path: string, input: unknown): object {
    this.#id += 1;
    return { id: this.#id, jsonrpc: "2.0", method, params: { path, input } };
  }

  /** Resolves when it may send more; at once where the link is gone. */
  async send(message: object | string | Buffer): Promise<void> {
    if (!this.isOpen) return;
    const isText = typeof message === "string" || Buffer.isBuffer(message);
    const bytes = isText ? message : JSON.stringify(message);
    await new Promise<void>((resolve) => {
      const wait = this.#socket.bufferedAmount > MOST_BUFFERED;
      this.#socket.send(bytes, () => wait && resolve());
      if (!wait) setImmediate(resolve);
    });
  }

  /** Resolves at the next message, the link's end, or after a while. */
  heard(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(done, WAIT_MS);
      function done(): void {
        clearTimeout(timer);
        resolve();
      }
      this.#socket.once("message", done);
      this.#socket.once("close", done);
    });
  }

  /** Reads no more. */
  pause(): void {
    if (this.isOpen) this.#socket.pause();
  }

  destroy(): void {
    this.#socket.terminate();
  }
}
