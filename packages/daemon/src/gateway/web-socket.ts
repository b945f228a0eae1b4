import { randomBytes } from "node:crypto";
import { request as httpRequest, type IncomingMessage } from "node:http";
import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { Duplex } from "node:stream";
import { answerHeaders, requestHeaders } from "./gateway-headers.ts";

export interface WebSocketCall {
  readonly stream: ServerHttp2Stream;
  readonly headers: IncomingHttpHeaders;
  readonly target: { readonly host: string; readonly port: number };
  /** Answers where the engine gave no answer of its own that could be passed on. */
  readonly onFault: (code: "no_running_engine" | "upstream_failed") => void;
}

/** A WebSocket that came as extended CONNECT (RFC 8441), on to a workload that knows RFC 6455 alone. */
export function forwardWebSocket({ stream, headers, target, onFault }: WebSocketCall): void {
  const engine = httpRequest({
    ...target,
    path: headers[":path"] ?? "/",
    agent: false,
    headers: {
      ...requestHeaders(headers),
      connection: "Upgrade",
      upgrade: "websocket",
      "sec-websocket-version": "13",
      "sec-websocket-key": randomBytes(16).toString("base64"),
    },
  });
  const leave = (): void => void engine.destroy();
  stream.once("close", leave);
  engine.on("error", (error: NodeJS.ErrnoException) => {
    onFault(error.code === "ECONNREFUSED" ? "no_running_engine" : "upstream_failed");
  });
  engine.on("upgrade", (answer, socket, head) => {
    stream.off("close", leave);
    join(stream, answer, { socket, head });
  });
  engine.on("response", (answer) => refuse(stream, answer, onFault));
  engine.end();
}

function join(stream: ServerHttp2Stream, answer: IncomingMessage, engine: { socket: Duplex; head: Buffer }): void {
  const { socket, head } = engine;
  socket.on("error", () => undefined);
  if (stream.destroyed) {
    socket.destroy();
    return;
  }
  if ("setNoDelay" in socket && typeof socket.setNoDelay === "function") socket.setNoDelay(true);
  stream.respond(answerHeaders(200, answer.headers));
  if (head.length > 0) stream.write(head);
  stream.pipe(socket);
  socket.pipe(stream);
  stream.once("close", () => socket.destroy());
  socket.once("close", () => {
    if (!stream.writableEnded) stream.destroy(new Error("the engine broke off"));
  });
}

/** The engine said something else than 101: its refusal is passed on, and a success must not be taken for an open WebSocket. */
function refuse(stream: ServerHttp2Stream, answer: IncomingMessage, onFault: WebSocketCall["onFault"]): void {
  const { statusCode = 502 } = answer;
  if (stream.destroyed || statusCode < 300) {
    answer.destroy();
    onFault("upstream_failed");
    return;
  }
  stream.respond(answerHeaders(statusCode, answer.headers));
  answer.on("error", () => stream.destroy(new Error("the engine broke off")));
  answer.pipe(stream);
}
