import { createHash } from "node:crypto";
import { type IncomingHttpHeaders, type IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { DomainError } from "@fairlead/protocol/errors";
import { TOKEN_SUBPROTOCOL_PREFIX } from "@fairlead/protocol/workload-connect";
import type {
  StreamTransport,
  TunnelHead,
  TunnelStreamCall,
  TunnelStreamHandler,
} from "@fairlead/wire/tunnel-transport";
import { gatewayFault, workloadBrokeOff } from "./relay-faults.ts";
import { offeredSubprotocols, outwardHeaders } from "./relay-headers.ts";

/** RFC 6455 §1.3. */
const HANDSHAKE_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/** Detects peers that vanished; a silent WebSocket would not notice. */
const KEEP_ALIVE_MS = 60_000;

export interface RelayedSocket {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Buffer;
  readonly nodeId: string;
  readonly requestId: string;
  readonly publicPath: string;
  /** Sends our own response instead of 101. */
  readonly refuse: (error: unknown) => void;
}

/** @throws DomainError unless it is a handshake of RFC 6455. */
export function handshakeKey({ method, headers }: IncomingMessage): string {
  const key = headers["sec-websocket-key"] ?? "";
  if (method !== "GET" || headers["sec-websocket-version"] !== "13" || Buffer.from(key, "base64").length !== 16) {
    throw new DomainError("invalid_request", "This is not a WebSocket handshake of version 13 (RFC 6455).", {
      param: "sec-websocket-key",
    });
  }
  return key;
}

/** Relays one WebSocket as two byte streams after the handshake. */
export class RelaySocket implements TunnelStreamHandler {
  readonly #relayed: RelayedSocket;
  readonly #key: string;
  #call: TunnelStreamCall | undefined;
  #opened = false;
  /** If the workload did not open the WebSocket. */
  #answer: ServerResponse | null = null;

  constructor(relayed: RelayedSocket, key: string) {
    this.#relayed = relayed;
    this.#key = key;
  }

  start(tunnel: StreamTransport, request: TunnelHead): void {
    const { socket, head } = this.#relayed;
    if (socket instanceof Socket) socket.setNoDelay(true).setKeepAlive(true, KEEP_ALIVE_MS);
    const call = tunnel.openStream({ ...request, kind: "web-socket" }, this);
    this.#call = call;
    if (head.length > 0) call.write(head);
    socket.on("data", (chunk: Buffer) => {
      if (this.#call?.write(chunk) === false) socket.pause();
    });
    socket.once("end", () => {
      if (this.#opened) this.#call?.end();
      else socket.destroy();
    });
    socket.on("drain", () => this.#call?.resume());
    socket.once("close", () => this.#leave());
  }

  /** The permission for this WebSocket has ended. */
  cut(): void {
    this.#leave();
    this.#relayed.socket.destroy();
  }

  onHeaders(status: number, headers: IncomingHttpHeaders): void {
    const fault = gatewayFault(headers);
    if (fault !== null) this.#fail(fault);
    else if (status === 200) {
      this.#opened = true;
      this.#relayed.socket.write(this.#switch(headers), "latin1");
    } else this.#refusedByWorkload(status, headers);
  }

  onData(chunk: Buffer): boolean {
    return (this.#answer ?? this.#relayed.socket).write(chunk);
  }

  onDrain(): void {
    this.#relayed.socket.resume();
  }

  onEnd(): void {
    this.#call = undefined;
    const { socket } = this.#relayed;
    if (this.#answer === null) socket.end();
    else this.#answer.end(() => socket.end());
  }

  onError(error: Error): void {
    this.#call = undefined;
    const { socket, refuse } = this.#relayed;
    if (this.#opened || this.#answer !== null) socket.destroy();
    else refuse(workloadBrokeOff(error));
  }

  #fail(error: Error): void {
    this.#leave();
    this.#relayed.refuse(error);
  }

  #leave(): void {
    this.#call?.abort();
    this.#call = undefined;
  }

  #switch(headers: IncomingHttpHeaders): string {
    const accept = createHash("sha1")
      .update(this.#key + HANDSHAKE_GUID)
      .digest("base64");
    const { "content-security-policy": _policy, ...kept } = outwardHeaders(headers, this.#relayed);
    const subprotocol = headers["sec-websocket-protocol"] ?? this.#tokenSubprotocol();
    const told = {
      ...kept,
      connection: "Upgrade",
      upgrade: "websocket",
      "sec-websocket-accept": accept,
      ...(subprotocol === null ? {} : { "sec-websocket-protocol": subprotocol }),
    };
    const lines = Object.entries(told).map(([name, value]) => `${name}: ${String(value)}`);
    return ["HTTP/1.1 101 Switching Protocols", ...lines, "", ""].join("\r\n");
  }

  /** Browsers fail if none of the offered subprotocols is chosen, so the token's is chosen if there is no other. */
  #tokenSubprotocol(): string | null {
    const { token } = offeredSubprotocols(this.#relayed.request.headers["sec-websocket-protocol"]);
    return token === null ? null : TOKEN_SUBPROTOCOL_PREFIX + token;
  }

  #refusedByWorkload(status: number, headers: IncomingHttpHeaders): void {
    const { request, socket } = this.#relayed;
    const answer = new ServerResponse(request);
    answer.shouldKeepAlive = false;
    if (socket instanceof Socket) answer.assignSocket(socket);
    try {
      answer.writeHead(status, outwardHeaders(headers, this.#relayed));
    } catch (error) {
      this.#fail(workloadBrokeOff(error));
      return;
    }
    answer.on("drain", () => this.#call?.resume());
    this.#answer = answer;
  }
}
