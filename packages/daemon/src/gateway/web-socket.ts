import { randomBytes } from "node:crypto";
import { type ClientRequest, request as httpRequest, type IncomingMessage } from "node:http";
import type { Duplex, Readable } from "node:stream";
import type { IncomingCall, TunnelCallHandler } from "../tunnel/tunnel-call.ts";
import { answerHeaders, requestHeaders } from "./gateway-headers.ts";

export interface WebSocketOptions {
  readonly target: { readonly host: string; readonly port: number };
  /** Called if the engine sent no response that could be passed on. */
  readonly onFault: (code: "no_running_engine" | "upstream_failed") => void;
}

/** Forwards a WebSocket from the tunnel to a workload (RFC 6455). */
export function forwardWebSocket(call: IncomingCall, { target, onFault }: WebSocketOptions): void {
  const engine = httpRequest({
    ...target,
    path: call.request.path,
    agent: false,
    headers: {
      ...requestHeaders(call.request.headers),
      connection: "Upgrade",
      upgrade: "websocket",
      "sec-websocket-version": "13",
      "sec-websocket-key": randomBytes(16).toString("base64"),
    },
  });
  const forward = new WebSocketForward(call, engine);
  engine.on("error", (error: NodeJS.ErrnoException) => {
    onFault(error.code === "ECONNREFUSED" ? "no_running_engine" : "upstream_failed");
  });
  engine.on("upgrade", (answer, socket, head) => forward.join(answer, { socket, head }));
  engine.on("response", (answer) => {
    if (!forward.refuse(answer)) onFault("upstream_failed");
  });
  engine.end();
}

/** Pipes both directions with backpressure; each ends on its own. */
class WebSocketForward implements TunnelCallHandler {
  readonly #call: IncomingCall;
  #engine: ClientRequest | undefined;
  /** Destination of the client's bytes after the upgrade. */
  #socket: Duplex | undefined;
  /** Source of the response: the socket or an error response. */
  #answer: Readable | undefined;
  #isRefused = false;
  /** Bytes received before the upgrade. */
  #early: Buffer[] = [];
  #isWhole = false;
  #isAnswerWhole = false;

  constructor(call: IncomingCall, engine: ClientRequest) {
    this.#call = call;
    this.#engine = engine;
    call.handle(this);
  }

  join(answer: IncomingMessage, { socket, head }: { readonly socket: Duplex; readonly head: Buffer }): void {
    const call = this.#call;
    socket.on("error", () => undefined);
    if (call.isClosed) {
      socket.destroy();
      return;
    }
    if ("setNoDelay" in socket && typeof socket.setNoDelay === "function") socket.setNoDelay(true);
    this.#socket = socket;
    socket.on("drain", () => call.resume());
    socket.once("close", () => this.#socketClosed());
    call.respond(200, answerHeaders(answer.headers));
    if (head.length > 0) call.write(head);
    this.#carry(socket);
    for (const chunk of this.#early.splice(0)) socket.write(chunk);
    if (this.#isWhole) socket.end();
    else if (!socket.writableNeedDrain) call.resume();
  }

  /** The engine did not return 101: errors are passed on, but a success must not look like an open WebSocket. */
  refuse(answer: IncomingMessage): boolean {
    const { statusCode = 502 } = answer;
    this.#isRefused = true;
    this.#early = [];
    if (this.#call.isClosed || statusCode < 300) {
      answer.destroy();
      return false;
    }
    answer.on("error", (cause) => this.#break(cause));
    this.#call.respond(statusCode, answerHeaders(answer.headers));
    this.#carry(answer);
    this.#call.resume();
    return true;
  }

  onData(chunk: Buffer): boolean {
    if (this.#isRefused) return true;
    const socket = this.#socket;
    if (socket !== undefined) return !socket.writable || socket.write(chunk);
    this.#early.push(chunk);
    return false;
  }

  onEnd(): void {
    this.#isWhole = true;
    this.#socket?.end();
  }

  onDrain(): void {
    this.#answer?.resume();
  }

  onClose(): void {
    this.#engine?.destroy();
    this.#socket?.destroy();
    this.#engine = undefined;
    this.#socket = undefined;
    this.#answer = undefined;
    this.#early = [];
  }

  #carry(answer: Readable): void {
    const call = this.#call;
    this.#answer = answer;
    answer.on("data", (chunk: Buffer) => {
      if (!call.write(chunk)) answer.pause();
    });
    answer.on("end", () => {
      this.#isAnswerWhole = true;
      call.end();
    });
  }

  #socketClosed(): void {
    if (!this.#isAnswerWhole) this.#break(undefined);
    // Discard further bytes, so that the call can end.
    else this.#call.resume();
  }

  #break(cause: unknown): void {
    this.#call.break(new Error("the engine closed the connection", { cause }));
  }
}
