import { once } from "node:events";
import { createServer, type IncomingMessage, request, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { BoundCounters } from "../../telemetry/bounds/bound-counters.ts";
import { OpenConnections, type OpenConnectionsOptions } from "./open-connections.ts";

const TRUSTED = "127.0.0.9";

let bounds: BoundCounters;
let server: Server;
let connections: OpenConnections;
let sockets: Socket[];

beforeEach(() => {
  bounds = new BoundCounters();
  sockets = [];
  server = createServer((_request, response) => response.end("served"));
});
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  server.closeAllConnections();
  server.close();
  await once(server, "close");
});

async function serve(limits: Pick<OpenConnectionsOptions, "max" | "maxPerAddress">): Promise<void> {
  connections = new OpenConnections({ ...limits, isTrusted: (address) => address === TRUSTED, bounds });
  connections.guard(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
}

const port = (): number => (server.address() as AddressInfo).port;

/** A connection without a request, once the server has accepted it. */
async function open(localAddress: string): Promise<Socket> {
  const accepted = once(server, "connection");
  const socket = connect({ host: "127.0.0.1", port: port(), localAddress });
  socket.on("error", () => undefined);
  socket.resume();
  sockets.push(socket);
  await accepted;
  return socket;
}

async function openMany(count: number, localAddress: string): Promise<Socket[]> {
  const opened: Socket[] = [];
  for (let n = 0; n < count; n++) opened.push(await open(localAddress));
  return opened;
}

/** Sends a request and keeps the connection. */
async function speak(socket: Socket): Promise<void> {
  const response = once(socket, "data");
  socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  await response;
}

async function get(localAddress: string): Promise<string> {
  const call = request({ host: "127.0.0.1", port: port(), localAddress, agent: false });
  call.end();
  const [response] = (await once(call, "response")) as [IncomingMessage];
  return Buffer.concat(await response.toArray()).toString();
}

test("silent connections of an address make room, oldest first, without closing those of other addresses", async () => {
  await serve({ max: 100, maxPerAddress: 3 });
  const other = await open("127.0.0.3");
  const [first, ...later] = await openMany(3, "127.0.0.2");
  expect(await get("127.0.0.2")).toBe("served");
  await vi.waitFor(() => expect(first?.destroyed).toBe(true));
  expect([other, ...later].map(({ destroyed }) => destroyed)).toEqual([false, false, false]);
  expect(bounds.counts.get("connections_per_address")).toBe(1);
});

test("a connection with work in progress is never closed for a new one", async () => {
  await serve({ max: 100, maxPerAddress: 2 });
  const working = await openMany(2, "127.0.0.2");
  for (const socket of working) await speak(socket);
  const refused = await open("127.0.0.2");
  await vi.waitFor(() => expect(refused.destroyed).toBe(true));
  for (const socket of working) await speak(socket);
});

test("holds no more connections than the total limit, from however many addresses, and releases closed ones", async () => {
  await serve({ max: 4, maxPerAddress: 100 });
  for (let n = 1; n <= 20; n++) await open(`127.0.1.${n}`);
  expect(connections.open).toBe(4);
  expect(bounds.counts.get("connections")).toBe(16);
  expect(await get("127.0.0.2")).toBe("served");
  for (const socket of sockets) socket.destroy();
  await vi.waitFor(() => expect(connections.open).toBe(0));
});

test("trusted proxies and known nodes are not counted by address", async () => {
  await serve({ max: 100, maxPerAddress: 2 });
  const proxied = await openMany(5, TRUSTED);
  const nodes: Socket[] = [];
  for (let n = 0; n < 5; n++) {
    const accepted = once(server, "connection") as Promise<[Socket]>;
    nodes.push(await open("127.0.0.2"));
    const [socket] = await accepted;
    connections.settle(socket);
  }
  expect([...proxied, ...nodes].filter(({ destroyed }) => destroyed)).toEqual([]);
  expect(connections.open).toBe(10);
  expect(bounds.counts.size).toBe(0);
});
