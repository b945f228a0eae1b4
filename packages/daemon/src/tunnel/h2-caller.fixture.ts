import { once } from "node:events";
import { type ClientHttp2Session, type ClientHttp2Stream, connect as connectHttp2, constants } from "node:http2";
import { connect, createServer, type Socket } from "node:net";
import { TUNNEL_WORKLOAD_HEADER } from "@fairlead/protocol/daemon-link";
import type { TunnelHandler } from "./tunnel-call.ts";
import type { CallerCall, CallerHandler, CallerRequest } from "./tunnel-caller.fixture.ts";
import { serveTunnel } from "./tunnel-server.ts";
import type { TunnelHarness } from "./tunnel-stage.fixture.ts";

/** Two ends of a connection over the loopback. */
export async function socketPair(): Promise<{ readonly near: Socket; readonly far: Socket }> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  const taken = once(server, "connection");
  const near = connect(address.port, "127.0.0.1");
  const [[far]] = (await Promise.all([taken, once(near, "connect")])) as [[Socket], unknown];
  server.close();
  return { near, far };
}

export async function openH2Tunnel(handler: TunnelHandler): Promise<TunnelHarness> {
  const { near, far } = await socketPair();
  const stop = new AbortController();
  const served = serveTunnel(
    { socket: near, head: Buffer.alloc(0), protocol: "h2" },
    { handler, liveness: { pingIntervalMs: 10_000, pingTimeoutMs: 10_000 }, signal: stop.signal },
  );
  const session = connectHttp2("http://node", {
    createConnection: () => far,
    // As large as the control plane's.
    settings: { enablePush: false, initialWindowSize: 256 * 1024 },
    maxSessionMemory: 1024,
  });
  session.on("error", () => undefined);
  session.once("connect", () => session.setLocalWindowSize(8 * 1024 * 1024));
  await once(session, "remoteSettings");
  return {
    open: (request, caller) => new H2Caller(openStream(session, request), caller),
    lose: () => far.resetAndDestroy(),
    close: async () => {
      stop.abort();
      session.destroy();
      await served;
    },
  };
}

function openStream(session: ClientHttp2Session, request: CallerRequest): ClientHttp2Stream {
  const { kind, method, path, workload, headers } = request;
  const webSocket = kind === "web-socket" ? { ":scheme": "http", ":authority": "node", ":protocol": "websocket" } : {};
  return session.request(
    { ":method": method, ":path": path, ...webSocket, [TUNNEL_WORKLOAD_HEADER]: workload, ...headers },
    { endStream: kind === "no-body" },
  );
}

/** The caller's side of one call. */
class H2Caller implements CallerCall {
  readonly #stream: ClientHttp2Stream;
  #handler: CallerHandler | undefined;

  constructor(stream: ClientHttp2Stream, handler: CallerHandler) {
    this.#stream = stream;
    this.#handler = handler;
    stream.on("response", ({ ":status": status = 0, ...headers }) => {
      this.#handler?.onHeaders(status, headers);
    });
    stream.on("data", (chunk: Buffer) => {
      if (this.#handler?.onData(chunk) === false) stream.pause();
    });
    stream.on("drain", () => this.#handler?.onDrain());
    stream.on("end", () => this.#onEnd());
    stream.on("error", () => undefined);
    stream.on("close", () => this.#take()?.onError(new Error(`the stream was reset (code ${stream.rstCode})`)));
  }

  write(chunk: Buffer): boolean {
    const stream = this.#stream;
    return stream.destroyed || stream.writableEnded || stream.write(chunk);
  }

  end(): void {
    if (!this.#stream.destroyed) this.#stream.end();
  }

  resume(): void {
    this.#stream.resume();
  }

  abort(): void {
    this.#handler = undefined;
    this.#cancel();
  }

  #onEnd(): void {
    if (this.#stream.rstCode !== constants.NGHTTP2_NO_ERROR) return;
    this.#take()?.onEnd();
    if (!this.#stream.writableEnded) this.#cancel();
  }

  #cancel(): void {
    // `close` would first end a half-sent body as if it were whole.
    if (this.#stream.writableEnded) this.#stream.close(constants.NGHTTP2_CANCEL);
    else this.#stream.destroy(new Error("the call was aborted"));
  }

  #take(): CallerHandler | undefined {
    const handler = this.#handler;
    this.#handler = undefined;
    return handler;
  }
}
