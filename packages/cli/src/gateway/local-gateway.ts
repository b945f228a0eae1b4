import {
  type ClientRequest,
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  ServerResponse,
} from "node:http";
import { request as httpsRequest } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { WorkloadConnect } from "@fairlead/protocol/workload-connect";
import { connectionVia } from "@fairlead/wire/proxy/proxy-connect";
import type { ProxyRules } from "@fairlead/wire/proxy/proxy-rules";
import { CliError } from "../cli-error.ts";
import { refusalOfRequest } from "./local-caller.ts";
import type { RenewedWay } from "./renewed-way.ts";

export interface LocalGatewayOptions {
  /** On loopback; 0 for any free port. */
  readonly port: number;
  readonly way: Pick<RenewedWay, "current" | "forget">;
  readonly proxies: ProxyRules;
}

export interface LocalGateway {
  readonly port: number;
  close(): void;
}

/** Forwards a loopback port to a workload through the platform's relay. It adds the token, so it only accepts local programs. */
export async function openLocalGateway({ port, ...ways }: LocalGatewayOptions): Promise<LocalGateway> {
  const server = createServer();
  const sockets = new Set<Duplex>();
  // Uploads have no time limit.
  server.requestTimeout = 0;
  server.on("request", (request, response) => void forward(request, response, ways));
  server.on("upgrade", (request: IncomingMessage, socket: Socket, head: Buffer) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    void forwardUpgrade(request, { socket, head }, ways);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause) =>
      reject(new CliError(`Cannot listen on local port ${port}: ${cause.message}`, { cause })),
    );
    server.listen(port, "127.0.0.1", resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () => {
      server.close();
      server.closeAllConnections();
      for (const socket of sockets) socket.destroy();
    },
  };
}

type Ways = Omit<LocalGatewayOptions, "port">;

async function forward(request: IncomingMessage, response: ServerResponse, ways: Ways): Promise<void> {
  request.on("error", () => undefined);
  const sent = await send(request, response, ways);
  if (sent === null) return;
  sent.on("response", (answer: IncomingMessage) => pass(answer, response));
  request.pipe(sent);
}

interface Opened {
  readonly socket: Socket;
  readonly head: Buffer;
}

async function forwardUpgrade(request: IncomingMessage, { socket, head }: Opened, ways: Ways): Promise<void> {
  socket.on("error", () => undefined);
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  response.assignSocket(socket);
  response.on("finish", () => socket.end());
  const sent = await send(request, response, ways);
  if (sent === null) return;
  sent.on("response", (answer: IncomingMessage) => pass(answer, response));
  sent.on("upgrade", (answer, upstream, upstreamHead) => {
    response.detachSocket(socket);
    socket.write(switchText(answer), "latin1");
    socket.write(upstreamHead);
    upstream.write(head);
    upstream.on("error", () => undefined);
    upstream.pipe(socket).pipe(upstream);
    upstream.once("close", () => socket.destroy());
    socket.once("close", () => upstream.destroy());
  });
  sent.end();
}

/** Starts the call to the relay. @returns null if the client was rejected. */
async function send(
  request: IncomingMessage,
  response: ServerResponse,
  { way: ways, proxies }: Ways,
): Promise<ClientRequest | null> {
  const { method = "GET", headers, url = "/" } = request;
  const refusal = refusalOfRequest(method, headers);
  if (refusal !== null) return tell(response, 403, refusal);
  let way: WorkloadConnect;
  try {
    way = await ways.current();
  } catch (error) {
    return tell(response, 502, error instanceof Error ? error.message : String(error));
  }
  if (response.destroyed || response.socket?.destroyed === true) return null;
  const sent = call(way, { method, path: url, headers }, proxies);
  response.once("close", () => sent.destroy());
  sent.on("error", (error) => {
    if (response.headersSent) response.destroy();
    else tell(response, 502, `Cannot reach the platform's relay: ${error.message}`);
  });
  sent.once("response", (answer) => {
    // Only the relay's 401 has this header, never the workload's.
    if (answer.statusCode === 401 && answer.headers["www-authenticate"] !== undefined) ways.forget(way);
  });
  return sent;
}

function call(
  { gatewayUrl, authToken }: WorkloadConnect,
  asked: { method: string; path: string; headers: OutgoingHttpHeaders },
  proxies: ProxyRules,
): ClientRequest {
  const gateway = new URL(gatewayUrl);
  const { protocol, hostname, port, pathname, host } = gateway;
  const proxy = proxies.find(gateway);
  const open = protocol === "https:" ? httpsRequest : httpRequest;
  return open({
    hostname: hostname.replace(/^\[|\]$/g, ""),
    port,
    method: asked.method,
    // Unchanged, so that the workload gets the path that the client sent.
    path: pathname + asked.path,
    headers: { ...asked.headers, host, authorization: `Bearer ${authToken}` },
    ...(proxy === null ? { agent: false } : connectionVia(proxy, gateway)),
  });
}

function pass(answer: IncomingMessage, response: ServerResponse): void {
  const headers: OutgoingHttpHeaders = { ...answer.headers };
  for (const name of ["connection", "keep-alive", "transfer-encoding"]) delete headers[name];
  const policy = withoutSandbox(answer.headers["content-security-policy"]);
  if (policy === undefined) delete headers["content-security-policy"];
  else headers["content-security-policy"] = policy;
  response.writeHead(answer.statusCode ?? 502, headers);
  response.flushHeaders();
  answer.on("error", () => response.destroy());
  answer.pipe(response);
}

/** The sandbox protects the platform's origin; here the workload has its own origin. */
function withoutSandbox(policy: string | string[] | undefined): string | undefined {
  const rest = String(policy ?? "").replace(/(^|, )sandbox$/, "");
  return rest === "" ? undefined : rest;
}

function tell(response: ServerResponse, status: number, message: string): null {
  response.writeHead(status, { "content-type": "text/plain; charset=utf-8" }).end(`${message}\n`);
  return null;
}

function switchText({ rawHeaders }: IncomingMessage): string {
  let text = "HTTP/1.1 101 Switching Protocols\r\n";
  for (let index = 0; index < rawHeaders.length; index += 2)
    text += `${rawHeaders[index]}: ${rawHeaders[index + 1]}\r\n`;
  return `${text}\r\n`;
}
