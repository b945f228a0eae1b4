import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { LINK_FLOODED, LINK_TAKEN_OVER, MAX_LINK_MESSAGE_BYTES } from "@fairlead/protocol/daemon-link";
import { cutText } from "@fairlead/protocol/values/text";
import type { TRPCError } from "@trpc/server";
import { applyWSSHandler } from "@trpc/server/adapters/ws";
import type { Logger } from "pino";
import { type WebSocket, WebSocketServer } from "ws";
import type { BoundCounters } from "../../telemetry/bounds/bound-counters.ts";
import type { NodeRates } from "../nodes/node-rates.ts";
import { daemonRouter, type LinkContext } from "./daemon-router.ts";
import { GuardedSocket } from "./guarded-socket.ts";
import { LinkGuard } from "./link-guard.ts";
import type { LinkEnd, LinkService } from "./link-service.ts";

export interface LinkServerDeps {
  readonly links: LinkService;
  readonly rates: NodeRates;
  readonly bounds: Pick<BoundCounters, "reached">;
  readonly log: Logger;
  readonly keepAlive?: LinkKeepAlive;
}

/** Milliseconds without a message until a ping, and the time for its response. */
export interface LinkKeepAlive {
  readonly pingMs: number;
  readonly pongWaitMs: number;
}

export interface LinkUpgrade {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Buffer;
  readonly nodeId: string;
}

/** Daemons do not fragment, but intermediaries may. */
const MAX_FRAGMENTS = 1024;
/** Longer than the daemon's own interval, so that it pings first, with time for a busy process to respond. */
const KEEP_ALIVE: LinkKeepAlive = { pingMs: 30_000, pongWaitMs: 15_000 };
const GOOD_BYE_MS = 500;
/** RFC 6455 §7.4.1. */
const GOING_AWAY = 1001;
const POLICY_VIOLATION = 1008;

/** tRPC over WebSocket for daemons authenticated at the upgrade. */
export class LinkServer {
  readonly #deps: LinkServerDeps;
  readonly #server = new WebSocketServer({
    noServer: true,
    maxPayload: MAX_LINK_MESSAGE_BYTES,
    maxFragments: MAX_FRAGMENTS,
  });
  readonly #contexts = new WeakMap<IncomingMessage, LinkContext>();
  readonly #sockets = new Map<WebSocket, string>();
  readonly #handler: ReturnType<typeof applyWSSHandler>;

  constructor(deps: LinkServerDeps) {
    this.#deps = deps;
    this.#handler = applyWSSHandler({
      wss: this.#server,
      router: daemonRouter,
      keepAlive: { enabled: true, ...(deps.keepAlive ?? KEEP_ALIVE) },
      createContext: ({ req }) => this.#contextOf(req),
      onError: ({ error, path, ctx }) => {
        // Rate violations were counted when rejected.
        if (error.code !== "INTERNAL_SERVER_ERROR" && error.code !== "TOO_MANY_REQUESTS") ctx?.guard.rejected();
        if (ctx?.guard.mayLog() ?? true) deps.log.warn(factsOf(error, path), "daemon link call failed");
      },
    });
  }

  accept(upgrade: LinkUpgrade): void {
    const { request, nodeId } = upgrade;
    this.#server.handleUpgrade(request, upgrade.socket, upgrade.head, (socket) => {
      const guarded = this.#guard(socket, { request, nodeId });
      this.#sockets.set(socket, nodeId);
      socket.once("close", () => this.#sockets.delete(socket));
      socket.on("error", (error) => this.#deps.log.debug({ err: error, nodeId }, "daemon link failed"));
      this.#server.emit("connection", guarded, request);
    });
  }

  /** Number of open links. */
  get open(): number {
    return this.#sockets.size;
  }

  /** Closes a deleted or revoked node's links immediately. */
  disconnect(nodeId: string): void {
    for (const [socket, owner] of this.#sockets) if (owner === nodeId) socket.terminate();
  }

  /** Closes all links gracefully, with a short timeout: daemons reconnect. */
  async close(): Promise<void> {
    this.#handler.broadcastReconnectNotification();
    for (const socket of this.#sockets.keys()) socket.close(GOING_AWAY, "the server is stopping");
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    const cut = setTimeout(() => {
      for (const socket of this.#sockets.keys()) socket.terminate();
    }, GOOD_BYE_MS);
    await closed;
    clearTimeout(cut);
  }

  #guard(socket: WebSocket, { request, nodeId }: Pick<LinkUpgrade, "request" | "nodeId">): GuardedSocket {
    const { links, rates, bounds, log } = this.#deps;
    const onFlood = (reason: string): void => {
      guarded.close(LINK_FLOODED, reason);
      if (rates.take(nodeId, "logged"))
        log.warn({ nodeId, reason }, "daemon link closed: the daemon exceeded its limits");
      session.flooded(reason);
    };
    const guard = new LinkGuard({ nodeId, rates, bounds, onFlood });
    const guarded = new GuardedSocket(socket, guard, (bufferedBytes) => {
      bounds.reached("link_unread_bytes");
      log.warn({ nodeId, bufferedBytes }, "daemon link cut off: the daemon does not read it");
    });
    const session = links.connect(nodeId, (why) => endLink(guarded, why));
    socket.once("close", () => session.ended());
    this.#contexts.set(request, { session, guard });
    return guarded;
  }

  #contextOf(request: IncomingMessage): LinkContext {
    const context = this.#contexts.get(request);
    if (!context) throw new Error("a link reached tRPC without an authenticated upgrade");
    return context;
  }
}

function endLink(socket: GuardedSocket, why: LinkEnd): void {
  if (why === "taken-over") socket.close(LINK_TAKEN_OVER, "a newer link has taken over");
  else socket.close(POLICY_VIOLATION, "no hello received");
}

/** For the log. Messages of errors caused by the daemon may be as long as its messages. */
function factsOf(error: TRPCError, path = ""): object {
  const call = cutText(path, 64);
  if (error.code === "INTERNAL_SERVER_ERROR") return { err: error, call };
  return { code: error.code, reason: cutText(error.message, 500), call };
}
