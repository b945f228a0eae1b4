import type { IncomingMessage, ServerResponse } from "node:http";
import { errorAnswer, toDomainError } from "@fairlead/hosting/errors/error-response";
import { publicPath } from "@fairlead/hosting/public-url";
import { bearerToken } from "@fairlead/hosting/requests/bearer";
import type { RequestTally } from "@fairlead/hosting/requests/request-tally";
import { TUNNEL_TOKEN_HEADER } from "@fairlead/protocol/daemon-link";
import { DomainError } from "@fairlead/protocol/errors";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { IdSource } from "@fairlead/protocol/values/ids";
import { GATEWAY_PATH } from "@fairlead/protocol/workload-connect";
import type { StreamTransport, TunnelHead } from "@fairlead/wire/tunnel-transport";
import type { ConnectTokens } from "../../access/auth/tokens/connect-token.ts";
import type { WorkloadClaims } from "../../access/auth/tokens/tokens.ts";
import type { RequestDiversion } from "../../http/upgrades/divert-requests.ts";
import type { OpenUpgradeRoute, Upgrade } from "../../http/upgrades/upgrade-dispatcher.ts";
import type { Log } from "../../installation/process/log.ts";
import { OpenRelays, RELAY_MAX_MS, RELAY_SWEEP_MS } from "./open-relays.ts";
import { RelayCall } from "./relay-call.ts";
import { daemonAway } from "./relay-faults.ts";
import { inwardHeaders, offeredSubprotocols } from "./relay-headers.ts";
import { type RelayedPath, relayedPath } from "./relay-path.ts";
import { handshakeKey, RelaySocket } from "./relay-socket.ts";

export interface RelayDeps {
  readonly tokens: Pick<ConnectTokens, "authenticate" | "confirm">;
  readonly tunnels: { get(nodeId: string): StreamTransport | null; lostAt(nodeId: string): number | null };
  readonly requests: RequestTally;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly log: Log;
  /** URL of the platform host. */
  readonly publicUrl: string;
  readonly maxMs?: number;
}

const RELAY_ROUTE = `${GATEWAY_PATH("{id}")}/{path}`;
/** How long a rejected request's body is drained, so that its sender sees the response. */
const REFUSED_BODY_MS = 30_000;

/**
 * External access to a node's workload: `{base_url}/v1/nodes/{id}/gateway/…`. Checks the token and headers and forwards to the tunnel;
 * the daemon's gateway checks the token again.
 */
export class WorkloadRelay implements RequestDiversion {
  readonly #deps: RelayDeps;
  readonly #open: OpenRelays;
  readonly #publicPath: string;

  constructor(deps: RelayDeps) {
    this.#deps = deps;
    this.#publicPath = publicPath(deps.publicUrl);
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
    const call = new RelayCall({ ...exchange, nodeId: relayed.nodeId, publicPath: this.#publicPath });
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
    const parts = { request, socket, head, nodeId: relayed.nodeId, requestId, publicPath: this.#publicPath, refuse };
    const relay = new RelaySocket(parts, key);
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
      throw new DomainError("invalid_credential", "This token is for a workload of another node.");
    return claims;
  }

  #tunnelTo(nodeId: string): StreamTransport {
    const { tunnels } = this.#deps;
    const tunnel = tunnels.get(nodeId);
    if (tunnel === null) throw daemonAway(tunnels.lostAt(nodeId));
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
    // Counted but not logged: a line each would be a tenth of the cost of a small call.
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
  if (relayed === null) throw new DomainError("not_found", "Not found.");
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
