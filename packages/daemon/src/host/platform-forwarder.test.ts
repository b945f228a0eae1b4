import { once } from "node:events";
import { createServer, type Server, type Socket, connect as tcpConnect } from "node:net";
import { text } from "node:stream/consumers";
import { ConnectProxy } from "@fairlead/wire/proxy/connect-proxy.fixture";
import { ProxyRules } from "@fairlead/wire/proxy/proxy-rules";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Network } from "../runtime/container-runtime.ts";
import { aDesiredState, anAgent } from "../testing/builders.ts";
import { silentLog } from "../testing/silent-log.ts";
import type { ConditionFinding } from "./condition-rules.ts";
import { PlatformForwarder } from "./platform-forwarder.ts";

/** Loopback addresses that represent the machine's addresses in two networks. */
const NETWORK: Network = { id: "n1", name: "one", workloadId: "agt_one", gateway: "127.0.0.2", subnet: "127.0.0.0/8" };
const OTHER: Network = { id: "n2", name: "two", workloadId: "agt_two", gateway: "127.0.0.3", subnet: "127.0.0.0/8" };

let port: number;
let server: Server;
let forwarder: PlatformForwarder;
let sockets: Socket[];
let findings: ConditionFinding[];
const warn = vi.fn();

beforeEach(async () => {
  warn.mockClear();
  sockets = [];
  server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.push(socket);
    socket.on("error", () => undefined);
    void text(socket).then((heard) => socket.end(`heard ${heard.length}`));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  port = portOf(server);
  findings = [];
  const onFinding = (finding: ConditionFinding): void => void findings.push(finding);
  forwarder = new PlatformForwarder({ log: { ...silentLog, warn }, onFinding, maxConnections: 2 });
});
afterEach(async () => {
  await forwarder.close();
  for (const socket of sockets) socket.destroy();
  server.close();
});

function portOf(of: Server): number {
  const address = of.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}

const platform = (at: number) => ({ name: "host.docker.internal", host: "127.0.0.1", port: at, forwarded: true });
const agent = (workloadId: string, at: number) =>
  anAgent({ workloadId, network: { internet: true, platform: platform(at) } });

function show(workloads: ReturnType<typeof anAgent>[], ...networks: Network[]): void {
  const observed = {
    containers: [],
    foreign: new Map(),
    images: new Map(),
    networks: new Map(networks.map((network) => [network.name, network])),
  };
  forwarder.observed({ desired: aDesiredState({ workloads }), observed });
}

/** The response to a container that sends data and reads until the end. */
async function say(words: string, { gateway } = NETWORK): Promise<string> {
  const socket = tcpConnect({ host: gateway, port, allowHalfOpen: true });
  socket.on("error", () => undefined);
  socket.end(words);
  return text(socket);
}

const isReachable = async (from = NETWORK): Promise<boolean> =>
  (await say("hello", from).catch(() => "")) === "heard 5";
const becomes = (reachable: boolean, from = NETWORK): Promise<void> =>
  vi.waitFor(async () => expect(await isReachable(from)).toBe(reachable));

test("the platform can be reached at the machine's address on the workload's network, in both directions to the last byte", async () => {
  show([agent("agt_one", port)], NETWORK);
  await becomes(true);
  expect(await say("x".repeat(3_000_000))).toBe("heard 3000000");
});

test("a network without a gateway is reported for its workload and its machine, and affects no other workload", async () => {
  show([agent("agt_one", port), agent("agt_two", port)], { ...NETWORK, gateway: "" }, OTHER);
  await becomes(true, OTHER);
  await vi.waitFor(() => expect(findings).toHaveLength(1));
  expect(forwarder.faultOf("agt_one")).toMatch(
    /^Docker reports no gateway for the network one; .*docker network rm one/,
  );
  expect(forwarder.faultOf("agt_two")).toBeNull();
  expect(findings).toMatchObject([{ status: "problem", reason: "not_forwarded" }]);
  show([agent("agt_one", port), agent("agt_two", port)], NETWORK, OTHER);
  await becomes(true);
  await vi.waitFor(() => expect(findings.at(-1)?.status).toBe("ok"));
  expect(forwarder.faultOf("agt_one")).toBeNull();
});

test("an address that this machine does not have is reported until the machine has it", async () => {
  show([agent("agt_one", port)], { ...NETWORK, gateway: "203.0.113.9", subnet: "203.0.113.8/29" });
  await vi.waitFor(() => expect(findings).toHaveLength(1));
  expect(forwarder.faultOf("agt_one")).toMatch(/^cannot listen on port \d+ of 203\.0\.113\.9: .*EADDRNOTAVAIL/);
  show([agent("agt_one", port)], NETWORK);
  await becomes(true);
  await vi.waitFor(() => expect(findings.at(-1)).toEqual({ status: "ok", reason: "", message: "" }));
});

test("only the networks of workloads that name the platform can reach it", async () => {
  show([agent("agt_one", port), anAgent({ workloadId: "agt_two" })], NETWORK, OTHER);
  await becomes(true);
  expect(await isReachable(OTHER)).toBe(false);
});

test("a listener that no workload names any more is closed, and so are all listeners at the end", async () => {
  show([agent("agt_one", port)], NETWORK);
  await becomes(true);
  show([], NETWORK);
  await becomes(false);
  show([agent("agt_one", port)], NETWORK);
  await becomes(true);
  await forwarder.close();
  expect(await isReachable()).toBe(false);
});

test("a connection from outside the workload's network is closed", async () => {
  const inside = { ...OTHER, workloadId: "agt_one" };
  show([agent("agt_one", port)], { ...NETWORK, subnet: "10.9.8.0/24" }, inside);
  await becomes(true, inside);
  sockets = [];
  expect(await isReachable()).toBe(false);
  expect(sockets).toEqual([]);
});

test("a workload's connections to the platform are limited, and the log says when it exceeds the limit", async () => {
  show([agent("agt_one", port)], NETWORK);
  await becomes(true);
  await vi.waitFor(() => expect(sockets.every(({ destroyed }) => destroyed)).toBe(true));
  const open = [1, 2].map(() => tcpConnect({ host: NETWORK.gateway, port }));
  sockets = [];
  await vi.waitFor(() => expect(sockets).toHaveLength(2));
  for (const _ of [1, 2, 3]) expect(await isReachable()).toBe(false);
  expect(sockets).toHaveLength(2);
  expect(warn).toHaveBeenCalledTimes(1);
  for (const socket of open) socket.destroy();
  await becomes(true);
});

test("a platform on this machine that listens on all addresses is left alone", async () => {
  const everywhere = createServer((socket) => socket.end("all")).listen(0, "0.0.0.0");
  await once(everywhere, "listening");
  show([agent("agt_one", portOf(everywhere)), agent("agt_two", port)], NETWORK, OTHER);
  await becomes(true, OTHER);
  expect(await text(tcpConnect({ host: NETWORK.gateway, port: portOf(everywhere) }))).toBe("all");
  expect(warn).not.toHaveBeenCalled();
  everywhere.close();
});

test("a network that is recreated with another address is followed", async () => {
  show([agent("agt_one", port)], NETWORK);
  await becomes(true);
  const moved = { ...NETWORK, id: "n3", gateway: "127.0.0.4" };
  show([agent("agt_one", port)], moved);
  await becomes(true, moved);
  expect(await isReachable()).toBe(false);
});

test("a platform behind a proxy is reached through it, and the log says when the proxy does not connect", async () => {
  const proxy = await ConnectProxy.start({ credentials: "me:secret", route: () => `127.0.0.1:${port}` });
  await forwarder.close();
  const proxies = new ProxyRules({ https: proxy.fullUrl });
  forwarder = new PlatformForwarder({ log: { ...silentLog, warn }, onFinding: () => undefined, proxies });
  const far = { ...platform(port), name: "platform.test", host: "platform.test" };
  show([anAgent({ workloadId: "agt_one", network: { internet: false, platform: far } })], NETWORK);
  await becomes(true);
  expect(new Set(proxy.targets)).toEqual(new Set([`platform.test:${port}`]));
  proxy.status = 403;
  await becomes(false);
  const [facts, words] = warn.mock.lastCall ?? [];
  expect(words).toBe("a workload cannot reach the platform");
  expect(facts).toMatchObject({ network: "one", reason: expect.stringContaining("(status 403)") });
  proxy.close();
});
