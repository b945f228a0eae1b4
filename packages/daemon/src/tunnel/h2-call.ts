import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import { TUNNEL_FAULT_HEADER, TUNNEL_TOKEN_HEADER, TUNNEL_WORKLOAD_HEADER } from "@fairlead/protocol/daemon-link";
import type { TunnelCall, TunnelCallHandler, TunnelHandler, TunnelRequest } from "./tunnel-call.ts";

const NOTHING = Buffer.alloc(0);

/** For a session's `stream` event. */
export function h2Calls(handler: TunnelHandler): (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void {
  return (stream, headers) => {
    const call = new H2Call(stream, headers);
    if (headers[":method"] !== "CONNECT" || headers[":protocol"] === "websocket") handler(call);
    else {
      call.respond(502, { [TUNNEL_FAULT_HEADER]: "upstream_failed" });
      call.end();
      call.resume();
    }
  };
}

/** A call that came as a stream of HTTP/2. */
export class H2Call implements TunnelCall {
  readonly request: TunnelRequest;
  readonly #stream: ServerHttp2Stream;
  /** Undefined once all is over: Node may keep the stream in memory long after, and with it whatever it leads to. */
  #handler: TunnelCallHandler | undefined;
  #isBroken = false;
  #isOver = false;

  constructor(stream: ServerHttp2Stream, headers: IncomingHttpHeaders) {
    this.#stream = stream;
    this.request = requestOf(stream, headers);
    // Always with a 'close', which tells enough.
    stream.on("error", () => undefined);
    stream.on("close", () => this.#onClose());
  }

  get isClosed(): boolean {
    return this.#isBroken || this.#stream.destroyed;
  }

  get isAnswered(): boolean {
    return this.#stream.headersSent;
  }

  handle(handler: TunnelCallHandler): void {
    const stream = this.#stream;
    if (this.#isOver) {
      handler.onClose();
      return;
    }
    this.#handler = handler;
    stream.on("data", (chunk: Buffer) => {
      if (this.#handler?.onData(chunk) === false) stream.pause();
    });
    stream.on("end", () => this.#onEnd());
    stream.on("drain", () => this.#handler?.onDrain());
  }

  onceClosed(tell: () => void): void {
    this.#stream.once("close", tell);
  }

  respond(status: number, headers: TunnelRequest["headers"]): void {
    if (!this.isClosed) this.#stream.respond({ ":status": status, ...headers });
  }

  write(chunk: Buffer): boolean {
    return !this.#canWrite || this.#stream.write(chunk);
  }

  end(last?: Buffer): void {
    if (this.#canWrite) this.#stream.end(last);
  }

  resume(): void {
    this.#stream.resume();
  }

  /** Only `destroy` with an error resets a stream: Node's `close(code)` first ends it as if it were complete. */
  break(cause: Error): void {
    const stream = this.#stream;
    if (this.isClosed || stream.writableEnded) return;
    this.#isBroken = true;
    const reset = (): void => {
      stream.destroy(cause);
    };
    if (stream.headersSent) stream.write(NOTHING, reset);
    else reset();
  }

  /** Node ends by itself an answer that has no body, as one to HEAD. */
  get #canWrite(): boolean {
    return !this.isClosed && !this.#stream.writableEnded;
  }

  /** A reset stream "ends" too: then the body is cut, and must not look whole. */
  #onEnd(): void {
    const { aborted, rstCode } = this.#stream;
    if (!aborted && rstCode === constants.NGHTTP2_NO_ERROR) this.#handler?.onEnd();
  }

  #onClose(): void {
    const handler = this.#handler;
    this.#isOver = true;
    this.#handler = undefined;
    handler?.onClose();
  }
}

function requestOf(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): TunnelRequest {
  const { [TUNNEL_WORKLOAD_HEADER]: workload, [TUNNEL_TOKEN_HEADER]: token } = headers;
  const method = headers[":method"] ?? "GET";
  const bodyKind = stream.endAfterHeaders ? "no-body" : "body";
  return {
    workload: String(workload),
    token: token === undefined ? undefined : String(token),
    kind: method === "CONNECT" ? "web-socket" : bodyKind,
    method,
    path: headers[":path"] ?? "/",
    headers: headersOf(headers),
  };
}

/** As they came: Node writes and reads them as Latin-1, so that each character is one byte of the caller's. */
function headersOf(headers: IncomingHttpHeaders): TunnelRequest["headers"] {
  const kept: TunnelRequest["headers"] = {};
  for (const name in headers) {
    if (!name.startsWith(":") && name !== TUNNEL_WORKLOAD_HEADER && name !== TUNNEL_TOKEN_HEADER) {
      kept[name] = headers[name];
    }
  }
  return kept;
}
