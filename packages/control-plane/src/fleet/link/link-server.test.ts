import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type Hello, LINK_TAKEN_OVER } from "@fairlead/protocol/daemon-link";
import type { DesiredState } from "@fairlead/protocol/workload";
import { createTRPCClient, createWSClient, wsLink } from "@trpc/client";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import WebSocket from "ws";
import { BoundCounters } from "../../telemetry/bounds/bound-counters.ts";
import { openMemoryStore } from "../../testing.fixture.ts";
import { PlacedAgents } from "../nodes/desired/agents-on-node.fixture.ts";
import { type NodeFixture, nodeFixture, OWNER, reportFor } from "../nodes/node.fixture.ts";
import type { DaemonRouter } from "./daemon-router.ts";
import { LinkHolders, LinkHub } from "./link-hub.ts";
import { LinkServer } from "./link-server.ts";

let fixture: NodeFixture;
let agents: PlacedAgents;
let links: LinkServer;
let server: Server;
let nodeId: string;
const cleanups: (() => unknown)[] = [];
const log = pino({ level: "silent" });

const agentTokens = {
  issue: async (node: string, agent: string) => ({
    state: "issued" as const,
    token: `${node} ${agent}`,
    expiresIn: 3600,
  }),
};

function newHub(protocolVersions?: readonly number[]): LinkHub {
  const { reports, liveness, nodeSecrets: secrets, changes, clock } = fixture;
  const bounds = new BoundCounters();
  const versions = protocolVersions === undefined ? {} : { protocolVersions };
  return new LinkHub({
    reports,
    liveness,
    secrets,
    agentTokens,
    changes,
    clock,
    log,
    bounds,
    resyncMs: 60_000,
    ...versions,
  });
}

beforeEach(async () => {
  agents = new PlacedAgents();
  fixture = await nodeFixture(openMemoryStore, { agents });
  nodeId = (await fixture.createEnrolled("Box")).node.id;
  links = new LinkServer({ ...fixture, log, links: newHub() });
  server = createServer();
  server.on("upgrade", (request, socket, head) => links.accept({ request, socket, head, nodeId }));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
  await links.close();
  await new Promise((resolve) => server.close(resolve));
  await fixture.close();
});

function connect() {
  const { port } = server.address() as AddressInfo;
  const client = createWSClient({ url: `ws://127.0.0.1:${port}/`, WebSocket: WebSocket as never });
  cleanups.push(() => client.close());
  return createTRPCClient<DaemonRouter>({ links: [wsLink({ client })] });
}

const HELLO: Hello = {
  protocolVersions: [1],
  daemonVersion: "9.9.9",
  bootId: "boot",
  host: {
    operatingSystem: "Debian",
    kernel: "6",
    architecture: "x64",
    hostName: "box",
    cpus: 2,
    memoryMb: 1,
    diskFreeMb: 1,
    dockerVersion: "20",
  },
};

describe("the daemon link", () => {
  it("agrees on the highest protocol version that both speak, and records the daemon's version", async () => {
    const answer = await connect().hello.mutate({ ...HELLO, protocolVersions: [1, 99] });
    expect(answer).toEqual({ protocolVersion: 1, heartbeatSeconds: 10, serverTime: fixture.clock.now() });
    expect((await fixture.stores.nodes.find(nodeId))?.daemonVersion).toBe("9.9.9");
  });

  it.each([
    { speaks: [1, 2], daemon: [1], agreed: 1 },
    { speaks: [1, 2], daemon: [1, 2], agreed: 2 },
    { speaks: [2, 3], daemon: [1, 2], agreed: 2 },
  ])("a server of $speaks and a daemon of $daemon agree on $agreed", async ({ speaks, daemon, agreed }) => {
    const session = newHub(speaks).connect(nodeId, () => undefined);
    expect(await session.hello({ ...HELLO, protocolVersions: daemon })).toMatchObject({ protocolVersion: agreed });
  });

  it("a server without version 1 refuses a daemon that speaks only that, and says so", async () => {
    const session = newHub([2, 3]).connect(nodeId, () => undefined);
    await expect(session.hello(HELLO)).rejects.toThrow(
      "This server supports protocol 2, 3; the daemon supports 1. Update the older of the two.",
    );
  });

  it("replaces the link when another daemon of the node says hello, and tells the first one why", async () => {
    const { port } = server.address() as AddressInfo;
    const first = new WebSocket(`ws://127.0.0.1:${port}/`);
    const closed = new Promise<number>((resolve) => first.once("close", resolve));
    const params = { path: "hello", input: HELLO };
    first.once("open", () => first.send(JSON.stringify({ id: 1, method: "mutation", params })));
    await new Promise((resolve) => first.once("message", resolve));
    const second = connect();
    await second.hello.mutate({ ...HELLO, bootId: "another" });
    expect(await closed).toBe(LINK_TAKEN_OVER);
    await expect(second.heartbeat.mutate({ epoch: "e", generation: 1 })).resolves.toBeDefined();
  });

  it("a third link without a hello closes the first, with a reason", async () => {
    const { port } = server.address() as AddressInfo;
    const open = async (): Promise<WebSocket> => {
      const socket = new WebSocket(`ws://127.0.0.1:${port}/`);
      await new Promise((resolve) => socket.once("open", resolve));
      cleanups.push(() => socket.terminate());
      return socket;
    };
    const first = await open();
    const closed = new Promise<string>((resolve) =>
      first.once("close", (code, why) => resolve(`${code} ${why.toString()}`)),
    );
    await open();
    await open();
    expect(await closed).toBe("1008 no hello received");
    await vi.waitFor(() => expect(links.open).toBe(2));
  });

  it("keeps the newer link when an older one closes late", () => {
    const holders = new LinkHolders();
    const [first, second, third] = [vi.fn(), vi.fn(), vi.fn()];
    holders.take(nodeId, first);
    holders.take(nodeId, second);
    holders.leave(nodeId, first);
    holders.take(nodeId, third);
    expect([first, second, third].map((end) => end.mock.calls.length)).toEqual([1, 1, 0]);
  });

  it("tells a daemon without a common version which side to update", async () => {
    await expect(connect().hello.mutate({ ...HELLO, protocolVersions: [99] })).rejects.toThrow(/update the older/i);
  });

  it("issues agent tokens only for the link's own node, whatever a message says", async () => {
    const request = { workloadId: "agt_1", nodeId: "nod_other" };
    const answer = await connect().workerToken.query(request);
    expect(answer).toEqual({ state: "issued", token: `${nodeId} agt_1`, expiresIn: 3600 });
  });

  it("makes a node unreachable as soon as its daemon says goodbye, whatever is still in progress", async () => {
    const desired = await fixture.reports.desiredState(nodeId);
    const ready = { id: nodeId, workloadReports: [reportFor(desired)], operatingSystem: "", workerImageDigest: "" };
    await fixture.reports.ready(nodeId, ready);
    const client = connect();
    await client.hello.mutate(HELLO);
    await client.goodbye.mutate();
    expect(await fixture.statusOf(nodeId)).toBe("unreachable");
    const workloadReports = [{ ...reportFor(desired), ready: false, message: "late" }];
    await client.observe.mutate({ epoch: desired.epoch, generation: desired.generation, workloadReports });
    expect(await fixture.statusOf(nodeId)).toBe("unreachable");
  });

  it("ignores the goodbye of a daemon that was replaced", async () => {
    const desired = await fixture.reports.desiredState(nodeId);
    const ready = { id: nodeId, workloadReports: [reportFor(desired)], operatingSystem: "", workerImageDigest: "" };
    await fixture.reports.ready(nodeId, ready);
    const hub = newHub();
    const [former, present] = [hub.connect(nodeId, () => undefined), hub.connect(nodeId, () => undefined)];
    await former.hello(HELLO);
    await present.hello({ ...HELLO, bootId: "other" });
    await former.goodbye();
    expect(await fixture.statusOf(nodeId)).toBe("active");
    await present.goodbye();
    expect(await fixture.statusOf(nodeId)).toBe("unreachable");
  });

  it("ignores fields that a newer daemon adds", async () => {
    const newer = { ...HELLO, fromTheFuture: true } as Hello;
    await expect(connect().hello.mutate(newer)).resolves.toMatchObject({ protocolVersion: 1 });
  });

  it("sends a daemon the agents together with the engine", async () => {
    agents.place(nodeId, ["agt_1"]);
    await fixture.store.db.transaction().execute((within) => fixture.agentHosts.replanWithin(within, nodeId));
    const client = connect();
    await client.hello.mutate(HELLO);
    const told = Promise.withResolvers<DesiredState>();
    const subscription = client.desiredState.subscribe({}, { onData: ({ data }) => told.resolve(data) });
    cleanups.push(() => subscription.unsubscribe());
    const { workloads } = await told.promise;
    expect(workloads.map(({ workloadId }) => workloadId)).toEqual([`${nodeId}-engine`, "agt_1"]);
  });

  it("sends the desired state immediately, and again when it changes", async () => {
    const seen: DesiredState[] = [];
    const subscription = connect().desiredState.subscribe({}, { onData: ({ data }) => seen.push(data) });
    cleanups.push(() => subscription.unsubscribe());
    await vi.waitFor(() => expect(seen.map((state) => state.generation)).toEqual([1]));
    await fixture.stores.reports.setDesired(nodeId, []);
    fixture.changes.emit({ nodeId, projectId: seen[0]?.projectId ?? "", aspect: "desired" });
    await vi.waitFor(() => expect(seen.map((state) => state.generation)).toEqual([1, 2]));
    expect(seen[1]?.workloads).toEqual([]);
  });

  it("returns only secrets of the daemon's own node, encrypted, and accepts only valid names", async () => {
    const other = (await fixture.createEnrolled("Other")).node.id;
    await fixture.nodeSecrets.put(OWNER, nodeId, { name: "MINE", value: "canary-mine" });
    await fixture.nodeSecrets.put(OWNER, other, { name: "THEIRS", value: "canary-theirs" });
    const client = connect();
    const mine = await client.secret.query({ name: "MINE" });
    expect(mine.state).toBe("sealed");
    expect(JSON.stringify(mine)).not.toContain("canary");
    expect(await client.secret.query({ name: "THEIRS" })).toEqual({ state: "missing" });
    await expect(client.secret.query({ name: `../${other}/THEIRS` })).rejects.toThrow();
  });

  it("stores a daemon's observations without making the node active", async () => {
    const desired = await fixture.reports.desiredState(nodeId);
    const observation = { epoch: desired.epoch, generation: 1, workloadReports: [reportFor(desired)] };
    await connect().observe.mutate(observation);
    expect(await fixture.stores.reports.report(nodeId)).toMatchObject({ generation: 1 });
    expect(await fixture.statusOf(nodeId)).toBe("starting");
  });

  it("closes immediately when a node is disconnected", async () => {
    const client = connect();
    await client.heartbeat.mutate({ epoch: "e", generation: 1 });
    const closed = vi.fn();
    client.desiredState.subscribe({}, { onConnectionStateChange: (state) => state.state === "connecting" && closed() });
    links.disconnect(nodeId);
    await vi.waitFor(() => expect(closed).toHaveBeenCalled());
  });

  it("closes the link of a daemon that no longer responds, although its connection is open", async () => {
    const own = new LinkServer({ ...fixture, log, links: newHub(), keepAlive: { pingMs: 50, pongWaitMs: 50 } });
    server.removeAllListeners("upgrade");
    server.on("upgrade", (request, socket, head) => own.accept({ request, socket, head, nodeId }));
    cleanups.push(() => own.close());
    const { port } = server.address() as AddressInfo;
    // It knows nothing of the ping that tRPC sends as a text.
    const socket = new WebSocket(`ws://127.0.0.1:${port}/`);
    const closed = new Promise<number>((resolve) => socket.once("close", resolve));
    expect(await closed).toBe(1006);
    await vi.waitFor(() => expect(own.open).toBe(0));
  });

  it("tells daemons that the server is stopping, and does not wait for those that do not respond", async () => {
    const { port } = server.address() as AddressInfo;
    const [polite, deaf] = [new WebSocket(`ws://127.0.0.1:${port}/`), new WebSocket(`ws://127.0.0.1:${port}/`)];
    await vi.waitFor(() => expect(links.open).toBe(2));
    await vi.waitFor(() => expect(deaf.readyState).toBe(WebSocket.OPEN));
    deaf.pause();
    const told = new Promise((resolve) =>
      polite.once("close", (code: number, reason: Buffer) => resolve([code, reason.toString()])),
    );
    await links.close();
    expect(await told).toEqual([1001, "the server is stopping"]);
    deaf.terminate();
  });

  it("closes the link of a daemon that exceeds the message size", async () => {
    const { port } = server.address() as AddressInfo;
    const socket = new WebSocket(`ws://127.0.0.1:${port}/`);
    const closed = new Promise<number>((resolve) => socket.once("close", resolve));
    socket.once("open", () => socket.send("x".repeat(2 * 1024 * 1024)));
    expect(await closed).toBe(1009);
  });
});
