import { once } from "node:events";
import { createServer, type Server, type Socket, connect as tcpConnect } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Bridge } from "../runtime/container-runtime.ts";
import { aDesiredState, anAgent } from "../testing/builders.ts";
import { eventually, FakeTime } from "../testing/fake-time.ts";
import { silentLog } from "../testing/silent-log.ts";
import { LocalPorts } from "./local-ports.ts";

/** Loopback has a whole net of addresses on Linux: this one stands for the bridge's. */
const BRIDGE: Bridge = { address: "127.0.0.2", subnet: "127.0.0.0/8" };

let time: FakeTime;
let bridge: Bridge | null;
let asked: number;
let port: number;
let server: Server;
let ports: LocalPorts;
let sockets: Socket[];

beforeEach(async () => {
  time = new FakeTime();
  bridge = BRIDGE;
  asked = 0;
  sockets = [];
  server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.push(socket);
    socket.on("error", () => undefined);
    void text(socket).then((heard) => socket.end(`heard ${heard.length}`));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  ({ port } = address);
  const runtime = {
    bridge: async () => {
      asked += 1;
      return bridge;
    },
  };
  ports = new LocalPorts({ runtime, timers: time, log: silentLog });
});
afterEach(async () => {
  await ports.close();
  server.close();
});

const want = (generation: number, ...localPorts: number[]): void =>
  ports.desiredChanged(aDesiredState({ generation, workloads: [anAgent({ localPorts })] }));

/** What a container gets that says something and listens until the end. */
async function say(words: string, { address } = BRIDGE): Promise<string> {
  const socket = tcpConnect({ host: address, port, allowHalfOpen: true });
  socket.on("error", () => undefined);
  socket.end(words);
  return text(socket);
}

const isReachable = async (from = BRIDGE): Promise<boolean> => (await say("hello", from).catch(() => "")) === "heard 5";
const becomes = (reachable: boolean, from = BRIDGE): Promise<void> =>
  vi.waitFor(async () => expect(await isReachable(from)).toBe(reachable));

test("what a workload names is reached at the bridge's address, both ways and to the last byte", async () => {
  want(1, port);
  await becomes(true);
  expect(await say("x".repeat(3_000_000))).toBe("heard 3000000");
});

test("what nobody names any more is shut, and so is all at the end", async () => {
  want(1, port);
  await becomes(true);
  want(2);
  await becomes(false);
  want(3, port);
  await becomes(true);
  await ports.close();
  expect(await isReachable()).toBe(false);
});

test("nobody from outside of the bridge's net comes through", async () => {
  bridge = { ...BRIDGE, subnet: "10.9.8.0/24" };
  want(1, port);
  await eventually(() => asked > 0);
  expect(await isReachable()).toBe(false);
  expect(sockets).toEqual([]);
});

test("a machine that listens on all addresses itself is left alone", async () => {
  const everywhere = createServer((socket) => socket.end("all")).listen(0, "0.0.0.0");
  await once(everywhere, "listening");
  const address = everywhere.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  want(1, address.port, port);
  await becomes(true);
  const socket = tcpConnect({ host: BRIDGE.address, port: address.port });
  expect(await text(socket)).toBe("all");
  everywhere.close();
});

test("a container engine that comes late, or back with another bridge, is followed", async () => {
  bridge = null;
  want(1, port);
  await eventually(() => asked === 1);
  bridge = BRIDGE;
  await time.advance(15_000);
  await becomes(true);
  bridge = { ...BRIDGE, address: "127.0.0.3" };
  await time.advance(15_000);
  await becomes(true, { ...BRIDGE, address: "127.0.0.3" });
  expect(await isReachable()).toBe(false);
});

test("without a wish for ports the container engine is not asked", async () => {
  want(1);
  await time.advance(60_000);
  expect(asked).toBe(0);
});
