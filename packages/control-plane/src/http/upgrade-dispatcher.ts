import { type IncomingMessage, type Server, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { TUNNEL_UPGRADE } from "@fairlead/protocol/daemon-link";
import { DomainError } from "@fairlead/protocol/errors";
import type { IdSource } from "@fairlead/protocol/ids";
import type { Authenticate } from "../auth/authenticate.ts";
import type { NodePrincipal } from "../auth/principal.ts";
import type { Log } from "../log.ts";
import { errorAnswer, rawErrorAnswer, toDomainError } from "./error-response.ts";

/**
 * The one listener for `Upgrade` on the platform host. Credentials are judged before any handshake, so that a daemon reads a real
 * status and can tell *revoked* (stop) from *down* (retry); after a handshake it would only see a closed socket.
 */

export type UpgradeProtocol = "websocket" | typeof TUNNEL_UPGRADE;

interface RouteMatch {
  readonly protocol: UpgradeProtocol;
  /** @param path without the query. @returns the path's parameters, or null where the path is not this route's. */
  match(path: string): Readonly<Record<string, string>> | null;
}

/** For daemons, by their node identity token. */
export interface NodeUpgradeRoute extends RouteMatch {
  readonly for: "node";
  /** Before anything else is done for the caller. @throws DomainError overloaded */
  admit(): void;
  /** May throw a `DomainError` before it has written to the socket. From then on the socket is its own. */
  handle(upgrade: AcceptedUpgrade): void;
}

/** Judges by itself who calls: its credential is none of the platform host's. */
export interface OpenUpgradeRoute extends RouteMatch {
  readonly for: "anybody";
  /** As a node's. */
  handle(upgrade: Upgrade): Promise<void>;
}

export type UpgradeRoute = NodeUpgradeRoute | OpenUpgradeRoute;

export interface Upgrade {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Buffer;
  readonly params: Readonly<Record<string, string>>;
  readonly requestId: string;
  /** Answers an error instead of 101, as long as nothing was written. */
  readonly refuse: (error: unknown) => void;
}

export interface AcceptedUpgrade extends Omit<Upgrade, "refuse"> {
  readonly principal: NodePrincipal;
}

export interface UpgradeDispatcherOptions {
  readonly routes: readonly UpgradeRoute[];
  readonly authenticate: Authenticate;
  readonly ids: IdSource;
  readonly log: Log;
}

/** Whether the dispatcher may take a request; other protocols (h2c) are offers that a server is free to ignore. */
export function isOurUpgrade(request: IncomingMessage): boolean {
  const offered = request.headers.upgrade?.toLowerCase();
  return offered === "websocket" || offered === TUNNEL_UPGRADE;
}

export class UpgradeDispatcher {
  readonly #options: UpgradeDispatcherOptions;
  readonly #sockets = new Set<Duplex>();
  #closing = false;

  constructor(options: UpgradeDispatcherOptions) {
    this.#options = options;
  }

  attach(server: Server): void {
    server.on("upgrade", (request, socket, head) => void this.#dispatch(request, socket, head));
  }

  /** Refuses what comes from now on. */
  stop(): void {
    this.#closing = true;
  }

  /** Cuts the sockets that are still open; call it after their owners have said good-bye. */
  close(): void {
    this.stop();
    for (const socket of this.#sockets) socket.destroy();
  }

  async #dispatch(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const requestId = this.#options.ids.next("request");
    // Without a listener a reset during the check would end the process; later owners add their own.
    socket.on("error", () => {});
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
    const refuse = (error: unknown): void => this.#refuse({ socket, error, requestId });
    try {
      const { route, params } = this.#route(request);
      if (route.for === "anybody") {
        await route.handle({ request, socket, head, params, requestId, refuse });
        return;
      }
      route.admit();
      const principal = await this.#options.authenticate(request.headers.authorization, ["node"]);
      if (socket.destroyed) return;
      route.handle({ request, socket, head, params, principal, requestId });
    } catch (error) {
      refuse(error);
    }
  }

  #route(request: IncomingMessage): { route: UpgradeRoute; params: Readonly<Record<string, string>> } {
    if (this.#closing) throw new DomainError("unavailable", "The server is stopping.", { retryAfterSeconds: 1 });
    const path = (request.url ?? "").split("?", 1)[0] ?? "";
    const offered = request.headers.upgrade?.toLowerCase();
    let expected: UpgradeProtocol | null = null;
    for (const route of this.#options.routes) {
      const params = route.match(path);
      if (params && route.protocol === offered) return { route, params };
      if (params) expected = route.protocol;
    }
    if (expected) throw new UpgradeRequired(expected);
    throw new DomainError("not_found", "Nothing at this path can be upgraded.");
  }

  #refuse({ socket, error, requestId }: { socket: Duplex; error: unknown; requestId: string }): void {
    const told = error instanceof UpgradeRequired ? error.told : toDomainError(error);
    const answer = errorAnswer(told, requestId);
    // A fleet that comes back is turned away by the thousand; it is counted.
    if (told.code === "overloaded") this.#options.log.debug({ requestId }, "upgrade put off");
    else if (answer.status >= 500) this.#options.log.error({ err: told, requestId }, "upgrade failed");
    else this.#options.log.info({ code: told.code, note: told.note, requestId }, "upgrade refused");
    const { status, headers } =
      error instanceof UpgradeRequired
        ? { status: 426, headers: { ...answer.headers, upgrade: error.protocol } }
        : answer;
    socket.end(rawErrorAnswer({ status, headers, body: answer.body }, STATUS_CODES[status] ?? ""));
  }
}

/** The path is right and the protocol is not: 426 names the one to use. */
class UpgradeRequired extends Error {
  readonly protocol: UpgradeProtocol;
  readonly told: DomainError;

  constructor(protocol: UpgradeProtocol) {
    super(`upgrade to ${protocol}`);
    this.protocol = protocol;
    this.told = new DomainError("invalid_request", `Upgrade to \`${protocol}\` at this path.`, { param: "upgrade" });
  }
}
