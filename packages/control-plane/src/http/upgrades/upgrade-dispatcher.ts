import { type IncomingMessage, type Server, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { errorAnswer, rawErrorAnswer, toDomainError } from "@fairlead/hosting/errors/error-response";
import { headFault } from "@fairlead/hosting/requests/request-head";
import { TUNNEL_UPGRADE } from "@fairlead/protocol/daemon-link";
import { DomainError } from "@fairlead/protocol/errors";
import type { IdSource } from "@fairlead/protocol/values/ids";
import type { NodeCredentials } from "../../access/auth/authenticate.ts";
import type { NodePrincipal } from "../../access/auth/principal.ts";
import type { Log } from "../../installation/process/log.ts";
import type { UpgradeGuard } from "./upgrade-guard.ts";

/**
 * The only `Upgrade` listener of the platform host. Credentials are checked before the handshake, so that a daemon receives a status
 * and can distinguish *revoked* (stop) from *down* (retry).
 */

export type UpgradeProtocol = "websocket" | typeof TUNNEL_UPGRADE;

interface RouteMatch {
  readonly protocol: UpgradeProtocol;
  /** @param path without the query. @returns the path's parameters, or null if it does not match. */
  match(path: string): Readonly<Record<string, string>> | null;
}

/** For daemons, with their node identity token. */
export interface NodeUpgradeRoute extends RouteMatch {
  readonly for: "node";
  /** After the credential is verified, before the node is read from the store. @throws DomainError */
  admit(caller: VerifiedCaller): void;
  /** May throw a `DomainError` before writing to the socket. Then it owns the socket. */
  handle(upgrade: AcceptedUpgrade): void;
}

/** Authenticates the caller itself, with credentials other than the platform host's. */
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
  /** Sends an error instead of 101, if nothing was written yet. */
  readonly refuse: (error: unknown) => void;
}

/** A node with a verified token, at a path with these parameters. */
export interface VerifiedCaller {
  readonly principal: NodePrincipal;
  readonly params: Readonly<Record<string, string>>;
}

export interface AcceptedUpgrade extends Omit<Upgrade, "refuse"> {
  readonly principal: NodePrincipal;
}

export interface UpgradeDispatcherOptions {
  readonly routes: readonly UpgradeRoute[];
  readonly credentials: NodeCredentials;
  readonly guard: UpgradeGuard;
  /** From here on, the socket belongs to a node. */
  readonly onKnown?: (socket: Socket) => void;
  readonly ids: IdSource;
  readonly log: Log;
}

/** Whether the dispatcher handles the request; other protocols (h2c) are offers that may be ignored. */
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

  /** Rejects new upgrades. */
  stop(): void {
    this.#closing = true;
  }

  /** Destroys open sockets; call after their owners have closed gracefully. */
  close(): void {
    this.stop();
    for (const socket of this.#sockets) socket.destroy();
  }

  async #dispatch(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const requestId = this.#options.ids.next("request");
    // Without a listener, a reset during the check would end the process; the owner adds its own later.
    socket.on("error", () => {});
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
    const refuse = (error: unknown): void => this.#refuse({ socket, error, requestId });
    try {
      const fault = headFault(request);
      if (fault !== null) throw fault;
      const { route, params } = this.#route(request);
      const { guard, credentials } = this.#options;
      if (route.for === "anybody") {
        await guard.authenticate(request, () => route.handle({ request, socket, head, params, requestId, refuse }));
        return;
      }
      // The shared limit is charged only for callers with a valid token.
      const verified = await guard.authenticate(request, () => credentials.verify(request.headers.authorization));
      if (socket.destroyed) return;
      route.admit({ principal: verified.principal, params });
      const principal = await credentials.confirm(verified);
      if (socket.destroyed) return;
      this.#options.onKnown?.(request.socket);
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
    throw new DomainError("not_found", "This path does not support upgrades.");
  }

  #refuse({ socket, error, requestId }: { socket: Duplex; error: unknown; requestId: string }): void {
    const told = error instanceof UpgradeRequired ? error.told : toDomainError(error);
    const answer = errorAnswer(told, requestId);
    // Too frequent to log after a restart or under attack; both are counted.
    if (told.code === "overloaded" || told.code === "rate_limit_exceeded")
      this.#options.log.debug({ requestId }, "upgrade deferred");
    else if (answer.status >= 500) this.#options.log.error({ err: told, requestId }, "upgrade failed");
    else this.#options.log.info({ code: told.code, note: told.note, requestId }, "upgrade refused");
    const { status, headers } =
      error instanceof UpgradeRequired
        ? { status: 426, headers: { ...answer.headers, upgrade: error.protocol } }
        : answer;
    socket.end(rawErrorAnswer({ status, headers, body: answer.body }, STATUS_CODES[status] ?? ""));
  }
}

/** The path matches, but not the protocol: 426 names the right one. */
class UpgradeRequired extends Error {
  readonly protocol: UpgradeProtocol;
  readonly told: DomainError;

  constructor(protocol: UpgradeProtocol) {
    super(`upgrade to ${protocol}`);
    this.protocol = protocol;
    this.told = new DomainError("invalid_request", `This path requires an upgrade to \`${protocol}\`.`, {
      param: "upgrade",
    });
  }
}
