import { createServer, type Server, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { drained } from "./attack.ts";
import { type Reply, replyBytes } from "./replies.ts";

/** The mark in a call's text that names the reply to it. */
export const replyMark = (number: number): string => `reply-${number};`;
const MARK = /reply-(\d+);/;
const GOOD: Reply = { kind: "good", amount: 1, seed: 1, drip: false };
const DRIP_PIECES = 200;
const DRIP_MS = 5;
const HEAD_END = "\r\n\r\n";

/** An HTTP server as no library would have it: it reads requests, and writes the bytes that it was given. */
export class ReplyServer {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #replies = new Map<number, Reply>();
  #count = 0;
  #unmarked: Reply = GOOD;

  constructor() {
    this.#server = createServer((socket) => this.#serve(socket));
  }

  listen(port: number): Promise<void> {
    return new Promise((resolve) => this.#server.listen(port, "127.0.0.1", resolve));
  }

  /** @returns the mark of calls that get this reply. */
  prepare(reply: Reply): string {
    this.#count += 1;
    this.#replies.set(this.#count, reply);
    return replyMark(this.#count);
  }

  /** To requests without a mark. */
  always(reply: Reply): void {
    this.#unmarked = reply;
  }

  /** Ends every connection and forgets the replies. */
  reset(): void {
    this.#replies.clear();
    this.#unmarked = GOOD;
    for (const socket of this.#sockets) socket.destroy();
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket));
    socket.on("error", () => undefined);
    let text = "";
    socket.setEncoding("latin1");
    socket.on("data", (piece: string) => {
      text += piece;
      const end = text.indexOf(HEAD_END);
      if (end < 0) return;
      const head = text.slice(0, end);
      const length = Number(/content-length: *(\d+)/i.exec(head)?.[1] ?? 0);
      const isWhole = /transfer-encoding/i.test(head) ? text.endsWith(`0${HEAD_END}`) : text.length >= end + 4 + length;
      if (!isWhole) return;
      const asked = text;
      text = "";
      void this.#reply(socket, asked);
    });
  }

  async #reply(socket: Socket, asked: string): Promise<void> {
    const reply = this.#replies.get(Number(MARK.exec(asked)?.[1])) ?? this.#unmarked;
    if (reply.kind === "silence") return;
    if (reply.kind === "reset") return void socket.resetAndDestroy();
    const pieces = replyBytes(reply, asked.split(" ", 2)[1] ?? "");
    for (const piece of reply.drip ? drips(Buffer.concat(pieces.map((each) => Buffer.from(each)))) : pieces) {
      if (socket.destroyed) return;
      socket.write(piece);
      await drained(socket);
      if (reply.drip) await sleep(DRIP_MS);
    }
  }
}

function drips(bytes: Buffer): readonly Buffer[] {
  const size = Math.max(1, Math.ceil(bytes.length / DRIP_PIECES));
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, n) => bytes.subarray(n * size, (n + 1) * size));
}
