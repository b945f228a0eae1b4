import { type ClientHttp2Session, connect } from "node:http2";
import type { Duplex } from "node:stream";
import { TUNNEL_WORKLOAD_HEADER } from "@fairlead/protocol/daemon-link";
import { cutH2Session, watchH2Session } from "@fairlead/wire/h2-session";
import type { LivenessOptions } from "@fairlead/wire/liveness";
import { H2TunnelCall } from "./h2-tunnel-call.ts";
import { lostCall } from "./lost-call.ts";
import { RunningCalls } from "./running-calls.ts";
import {
  type Tunnel,
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
export class H2Tunnel implements Tunnel {
  readonly #session: ClientHttp2Session;
  readonly #calls = new RunningCalls();

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
      this.#calls.tellIdle();
      onClosed(reason);
    });
    watchH2Session(session, socket, liveness);
  }

  get usable(): boolean {
    return !this.#session.closed && !this.#session.destroyed;
  }

  open(request: TunnelRequest, handler: TunnelHandler): TunnelCall {
    try {
      const stream = this.#session.request(rawHeaders(request), { endStream: request.body.length === 0 });
      stream.once("close", this.#calls.begin(request));
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
      stream.once("close", this.#calls.begin(request));
      return new H2TunnelCall(stream, null, handler);
    } catch (error) {
      return lostCall(handler, new Error("the tunnel is closed", { cause: error }));
    }
  }

  idle(): Promise<void> {
    return this.#session.destroyed ? Promise.resolve() : this.#calls.idle();
  }

  drain(): Promise<void> {
    const session = this.#session;
    if (session.destroyed) return Promise.resolve();
    return new Promise((resolve) => {
      session.once("close", resolve);
      session.close();
    });
  }

  destroy(reason: Error): void {
    cutH2Session(this.#session, reason);
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
