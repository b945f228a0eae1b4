import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { LINK_TAKEN_OVER } from "@fairlead/protocol/daemon-link";
import { applyWSSHandler } from "@trpc/server/adapters/ws";
import type { Logger } from "pino";
import { type WebSocket, WebSocketServer } from "ws";
import { daemonRouter } from "./daemon-router.ts";
import type { LinkService, LinkSession } from "./link-service.ts";

export interface LinkServerDeps {
  readonly links: LinkService;
  readonly log: Logger;
  readonly keepAlive?: KeepAlive;
}

/** Milliseconds without a message until we ask, and that the answer may take. */
export interface KeepAlive {
  readonly pingMs: number;
  readonly pongWaitMs: number;
}

export interface LinkUpgrade {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Buffer;
  readonly nodeId: string;
}

/** Messages of the link are small (design §6); a larger one is a fault or an attack. */
const MAX_MESSAGE_BYTES = 1024 * 1024;
/** tRPC has no backpressure: a daemon that does not read is cut off before it costs memory. */
const MAX_BUFFERED_BYTES = 4 * 1024 * 1024;
/** Longer than the daemon's own interval, so that it asks first; and long enough for an answer that lies unread in a busy process. */
const KEEP_ALIVE: KeepAlive = { pingMs: 30_000, pongWaitMs: 15_000 };
const CHECK_MS = 5000;
const GOOD_BYE_MS = 500;
/** RFC 6455 §7.4.1. */
const GOING_AWAY = 1001;

/** tRPC over WebSocket for daemons whose upgrade was authenticated already. */
export class LinkServer {
  readonly #log: Logger;
  readonly #links: LinkService;
  readonly #server = new WebSocketServer({ noServer: true, maxPayload: MAX_MESSAGE_BYTES });
  readonly #sessions = new WeakMap<IncomingMessage, LinkSession>();
  readonly #sockets = new Map<WebSocket, string>();
  readonly #handler: ReturnType<typeof applyWSSHandler>;
  readonly #watch: NodeJS.Timeout;

  constructor(deps: LinkServerDeps) {
    this.#log = deps.log;
    this.#links = deps.links;
    this.#handler = applyWSSHandler({
      wss: this.#server,
      router: daemonRouter,
      keepAlive: { enabled: true, ...(deps.keepAlive ?? KEEP_ALIVE) },
      createContext: ({ req }) => ({ session: this.#sessionOf(req) }),
      onError: ({ error, path }) => this.#log.warn({ err: error, path }, "daemon link call failed"),
    });
    this.#watch = setInterval(() => this.#cutSlowReaders(), CHECK_MS);
    this.#watch.unref();
  }

  accept(upgrade: LinkUpgrade): void {
    const { request, nodeId } = upgrade;
    this.#server.handleUpgrade(request, upgrade.socket, upgrade.head, (socket) => {
      const session = this.#links.connect(nodeId, () => socket.close(LINK_TAKEN_OVER, "a newer link has taken over"));
      this.#sessions.set(request, session);
      this.#sockets.set(socket, nodeId);
      socket.once("close", () => {
        this.#sockets.delete(socket);
        session.ended();
      });
      socket.on("error", (error) => this.#log.debug({ err: error, nodeId }, "daemon link broke"));
      this.#server.emit("connection", socket, request);
    });
  }

  /** How many links are open. */
  get open(): number {
    return this.#sockets.size;
  }

  /** Ends the node's links at once: it was deleted, or its identity revoked. */
  disconnect(nodeId: string): void {
    for (const [socket, owner] of this.#sockets) if (owner === nodeId) socket.terminate();
  }

  /** Says good-bye, and does not wait for long: a daemon comes back by itself. */
  async close(): Promise<void> {
    clearInterval(this.#watch);
    this.#handler.broadcastReconnectNotification();
    for (const socket of this.#sockets.keys()) socket.close(GOING_AWAY, "the server is stopping");
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    const cut = setTimeout(() => {
      for (const socket of this.#sockets.keys()) socket.terminate();
    }, GOOD_BYE_MS);
    await closed;
    clearTimeout(cut);
  }

  #sessionOf(request: IncomingMessage): LinkSession {
    const session = this.#sessions.get(request);
    if (!session) throw new Error("a link reached tRPC without an authenticated upgrade");
    return session;
  }

  #cutSlowReaders(): void {
    for (const [socket, nodeId] of this.#sockets) {
      if (socket.bufferedAmount <= MAX_BUFFERED_BYTES) continue;
      this.#log.warn({ nodeId, bufferedBytes: socket.bufferedAmount }, "daemon does not read its link: cut");
      socket.terminate();
    }
  }
}
