import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "@fairlead/protocol/clock";
import { TUNNEL_TOKEN_HEADER } from "@fairlead/protocol/daemon-link";
import { DomainError } from "@fairlead/protocol/errors";
import type { IdSource } from "@fairlead/protocol/ids";
import { GATEWAY_PATH } from "@fairlead/protocol/workload-connect";
import { bearerToken } from "../auth/bearer.ts";
import type { ConnectTokens } from "../auth/connect-token.ts";
import type { WorkloadClaims } from "../auth/tokens.ts";
import type { RequestDiversion } from "../http/divert-requests.ts";
import { errorAnswer, toDomainError } from "../http/error-response.ts";
import type { RequestTally } from "../http/request-tally.ts";
import type { OpenUpgradeRoute, Upgrade } from "../http/upgrade-dispatcher.ts";
import type { Log } from "../log.ts";
import type { StreamTransport, TunnelHead } from "../tunnel/tunnel-transport.ts";
import { OpenRelays, RELAY_MAX_MS, RELAY_SWEEP_MS } from "./open-relays.ts";
import { RelayCall } from "./relay-call.ts";
import { noRunningEngine } from "./relay-faults.ts";
import { inwardHeaders, offeredSubprotocols } from "./relay-headers.ts";
import { type RelayedPath, relayedPath } from "./relay-path.ts";
import { handshakeKey, RelaySocket } from "./relay-socket.ts";

export interface RelayDeps {
  readonly tokens: Pick<ConnectTokens, "authenticate" | "confirm">;
  readonly tunnels: { get(nodeId: string): StreamTransport | null };
  readonly requests: RequestTally;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly log: Log;
  readonly maxMs?: number;
}

const RELAY_ROUTE = `${GATEWAY_PATH("{id}")}/{path}`;
/** How long the rest of a refused request's body is read away, so that whoever sends it sees the refusal. */
const REFUSED_BODY_MS = 30_000;

/**
 * The way to a node's workload from outside (design §6): `{base_url}/v1/nodes/{id}/gateway/…`. It judges the token, decides on
 * headers, and leaves the rest to the tunnel; the daemon's gateway judges the token once more.
 */
export class Relay implements RequestDiversion {
  readonly #deps: RelayDeps;
  readonly #open: OpenRelays;

  constructor(deps: RelayDeps) {
    this.#deps = deps;
    this.#open = new OpenRelays({ ...deps, maxMs: deps.maxMs ?? RELAY_MAX_MS, sweepMs: RELAY_SWEEP_MS });
  }

  takes(request: IncomingMessage): boolean {
    return relayedPath(request.url ?? "") !== null;
  }

  handle(request: IncomingMessage, response: ServerResponse): void {
    const { ids, clock } = this.#deps;
    const requestId = ids.next("request");
    const startedAt = clock.monotonic();
    request.on("error", () => {});
    response.once("close", () => this.#tell({ request, response, requestId, startedAt }));
    const refuse = (error: unknown): void => this.#refuse({ request, response, requestId }, error);
    this.#begin({ request, response, requestId, refuse }).catch(refuse);
  }

  /** WebSockets, for the upgrade dispatcher. */
  get upgrades(): OpenUpgradeRoute {
    return {
      for: "anybody",
      protocol: "websocket",
      match: (path) => (relayedPath(path) === null ? null : {}),
      handle: (upgrade) => this.#beginSocket(upgrade),
    };
  }

  async #begin(exchange: Exchange): Promise<void> {
    const { request, response } = exchange;
    const relayed = pathOf(request);
    const token = bearerToken(request.headers.authorization);
    const claims = await this.#authenticate(token, relayed.nodeId);
    if (response.destroyed) return;
    const tunnel = this.#tunnelTo(relayed.nodeId);
    const call = new RelayCall({ ...exchange, nodeId: relayed.nodeId });
    response.once(
      "close",
      this.#open.add(claims, () => call.cut()),
    );
    call.start(tunnel, headOf(request, { ...relayed, claims, token }));
  }

  async #beginSocket({ request, socket, head, requestId, refuse }: Upgrade): Promise<void> {
    const relayed = pathOf(request);
    const offered = offeredSubprotocols(request.headers["sec-websocket-protocol"]);
    const token = bearerToken(request.headers.authorization) ?? offered.token;
    const claims = await this.#authenticate(token, relayed.nodeId);
    const key = handshakeKey(request);
    if (socket.destroyed) return;
    const tunnel = this.#tunnelTo(relayed.nodeId);
    const { headers, ...asked } = headOf(request, { ...relayed, claims, token });
    const { "sec-websocket-protocol": _offered, ...others } = headers;
    const subprotocols = offered.others === null ? {} : { "sec-websocket-protocol": offered.others };
    const relay = new RelaySocket({ request, socket, head, nodeId: relayed.nodeId, requestId, refuse }, key);
    socket.once(
      "close",
      this.#open.add(claims, () => relay.cut()),
    );
    this.#deps.log.info({ route: RELAY_ROUTE, nodeId: relayed.nodeId, requestId }, "WebSocket relayed");
    relay.start(tunnel, { ...asked, headers: { ...others, ...subprotocols } });
  }

  async #authenticate(token: string | null, nodeId: string): Promise<WorkloadClaims> {
    if (token === null) {
      throw new DomainError(
        "invalid_credential",
        "Send `Authorization: Bearer <authToken>` with the token of `GET /v1/nodes/{id}/workload-connect` or `GET /v1/agents/{id}/connect`.",
      );
    }
    const claims = await this.#deps.tokens.authenticate(token);
    if (claims.nodeId !== nodeId)
      throw new DomainError("invalid_credential", "This token opens another node's workload.");
    return claims;
  }

  #tunnelTo(nodeId: string): StreamTransport {
    const tunnel = this.#deps.tunnels.get(nodeId);
    if (tunnel === null) throw noRunningEngine();
    return tunnel;
  }

  #refuse({ request, response, requestId }: Omit<Exchange, "refuse">, error: unknown): void {
    const told = toDomainError(error);
    const { status, headers, body } = errorAnswer(told, requestId);
    if (told.code === "internal") this.#deps.log.error({ err: told, requestId }, "request failed");
    if (response.headersSent || response.destroyed) {
      response.destroy();
      return;
    }
    response.writeHead(status, { ...headers, "content-length": Buffer.byteLength(body) }).end(body);
    if (request.complete) return;
    const timer = setTimeout(() => request.destroy(), REFUSED_BODY_MS).unref();
    request.once("close", () => clearTimeout(timer));
  }

  #tell({ request, response, requestId, startedAt }: Answered): void {
    const { clock, log, requests } = this.#deps;
    const milliseconds = clock.monotonic() - startedAt;
    const answered = {
      method: request.method ?? "",
      route: RELAY_ROUTE,
      status: response.headersSent ? response.statusCode : 0,
    };
    requests.add(answered, milliseconds / 1000);
    // The engine's answers are counted; a line for each would be a tenth of a small call.
    const level = response.statusCode < 400 && response.writableFinished ? "debug" : "info";
    log[level]({ ...answered, requestId, milliseconds: Math.round(milliseconds) }, "answered");
  }
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly requestId: string;
  readonly refuse: (error: unknown) => void;
}

type Answered = Omit<Exchange, "refuse"> & { readonly startedAt: number };

function pathOf(request: IncomingMessage): RelayedPath {
  const relayed = relayedPath(request.url ?? "");
  if (relayed === null) throw new DomainError("not_found", "There is nothing at this path.");
  return relayed;
}

interface Judged extends RelayedPath {
  readonly claims: WorkloadClaims;
  readonly token: string | null;
}

function headOf({ method = "GET", headers }: IncomingMessage, { path, claims, token }: Judged): TunnelHead {
  const inward = inwardHeaders(headers);
  inward[TUNNEL_TOKEN_HEADER] = token ?? "";
  return { workload: claims.workload, method, path, headers: inward };
}
