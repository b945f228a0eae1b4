import { type ClientHttp2Session, type ClientHttp2Stream, connect } from "node:http2";
import type { Duplex } from "node:stream";
import { LOGS_WORKLOAD, TUNNEL_WORKLOAD_HEADER } from "@fairlead/protocol/daemon-link";
import { H2TunnelCall, lostCall } from "./h2-tunnel-call.ts";
import { cutSession, type LivenessOptions, watchLiveness } from "./liveness.ts";
import {
  type StreamTransport,
  type TunnelCall,
  TunnelCannot,
  type TunnelHandler,
  type TunnelHead,
  type TunnelRequest,
  type TunnelStreamCall,
  type TunnelStreamHandler,
  type TunnelStreamRequest,
} from "./tunnel-transport.ts";

/** What a caller that stops reading can cost us per call; answers of models are small and slow. */
const ANSWER_WINDOW_BYTES = 256 * 1024;
const SESSION_WINDOW_BYTES = 8 * 1024 * 1024;
const SESSION_MEMORY_MB = 1024;
const MAX_CONCURRENT_CALLS = 65_536;

/** A tunnel over HTTP/2: this side is the client, the daemon the server, whoever opened the socket. */
export class H2Tunnel implements StreamTransport {
  readonly #session: ClientHttp2Session;
  #calls = 0;
  #whenIdle: (() => void)[] = [];

  /** @param onClosed called once, when the last call is over or the tunnel is lost. */
  constructor(socket: Duplex, liveness: LivenessOptions, onClosed: (reason: Error | undefined) => void) {
    const session = connect("http://node", {
      createConnection: () => socket,
      settings: { enablePush: false, initialWindowSize: ANSWER_WINDOW_BYTES },
      maxSessionMemory: SESSION_MEMORY_MB,
      peerMaxConcurrentStreams: MAX_CONCURRENT_CALLS,
    });
    this.#session = session;
    let reason: Error | undefined;
    session.once("connect", () => session.setLocalWindowSize(SESSION_WINDOW_BYTES));
    session.on("error", (error: Error) => {
      reason = error;
    });
    session.once("close", () => {
      this.#tellIdle();
      onClosed(reason);
    });
    watchLiveness(session, socket, liveness);
  }

  /** Whether a new call has a chance. */
  get usable(): boolean {
    return !this.#session.closed && !this.#session.destroyed;
  }

  open(request: TunnelRequest, handler: TunnelHandler): TunnelCall {
    try {
      const stream = this.#session.request(rawHeaders(request), { endStream: request.body.length === 0 });
      this.#count(stream, request);
      return new H2TunnelCall(stream, request.body, handler);
    } catch (error) {
      return lostCall(handler, new Error("the tunnel is closed", { cause: error }));
    }
  }

  openStream(request: TunnelStreamRequest, handler: TunnelStreamHandler): TunnelStreamCall {
    const { kind } = request;
    // Daemons of the first release do not say that they take extended CONNECT, and would end the whole session over it.
    if (kind === "web-socket" && this.usable && this.#session.remoteSettings.enableConnectProtocol !== true) {
      return lostCall(handler, new TunnelCannot("the node's daemon is too old for WebSockets"));
    }
    try {
      const stream = this.#session.request(rawHeaders(request, kind === "web-socket"), {
        endStream: kind === "no-body",
      });
      this.#count(stream, request);
      return new H2TunnelCall(stream, null, handler);
    } catch (error) {
      return lostCall(handler, new Error("the tunnel is closed", { cause: error }));
    }
  }

  /** Resolves when no call on a workload runs. */
  idle(): Promise<void> {
    if (this.#calls === 0 || this.#session.destroyed) return Promise.resolve();
    return new Promise((resolve) => this.#whenIdle.push(resolve));
  }

  #count(stream: ClientHttp2Stream, { workload }: TunnelHead): void {
    // The daemon's own services are no work of a workload.
    if (workload === LOGS_WORKLOAD) return;
    this.#calls += 1;
    stream.once("close", () => {
      this.#calls -= 1;
      if (this.#calls === 0) this.#tellIdle();
    });
  }

  #tellIdle(): void {
    for (const tell of this.#whenIdle.splice(0)) tell();
  }

  /** Takes no new calls; the tunnel closes after the last one, and then this resolves. */
  drain(): Promise<void> {
    const session = this.#session;
    if (session.destroyed) return Promise.resolve();
    return new Promise((resolve) => {
      session.once("close", resolve);
      session.close();
    });
  }

  /** Ends every call as failed, at once. */
  destroy(reason: Error): void {
    cutSession(this.#session, reason);
  }
}

/** As a flat list, which Node takes as it is. The whole set of pseudo headers, since Node would copy the list to add one. */
function rawHeaders({ method, path, workload, headers }: TunnelHead, webSocket = false): string[] {
  const list = [":method", webSocket ? "CONNECT" : method, ":path", path, ":scheme", "http", ":authority", "node"];
  // Pseudo headers come first.
  if (webSocket) list.push(":protocol", "websocket");
  list.push(TUNNEL_WORKLOAD_HEADER, workload);
  for (const name in headers) list.push(name, headers[name] ?? "");
  return list;
}
