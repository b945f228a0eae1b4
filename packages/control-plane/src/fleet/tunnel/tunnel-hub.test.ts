import { PassThrough } from "node:stream";
import { TestClock } from "@fairlead/protocol/testing/test-clock";
import { systemClock } from "@fairlead/protocol/values/clock";
import type { TunnelHandler, TunnelTransport } from "@fairlead/wire/tunnel-transport";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { BoundCounters } from "../../telemetry/bounds/bound-counters.ts";
import { FakeNodes } from "./testing/fake-node.ts";
import type { NodeRequest } from "./testing/node-request.ts";
import { TunnelHub } from "./tunnel-hub.ts";

const LIVENESS = { pingIntervalMs: 20, pingTimeoutMs: 300 };
const GET = { workload: "engine", method: "GET", path: "/", headers: {}, body: [] };

let hub: TunnelHub;
let nodes: FakeNodes;
let changes: string[];

beforeEach(() => {
  hub = new TunnelHub({
    log: pino({ level: "silent" }),
    clock: systemClock,
    bounds: new BoundCounters(),
    liveness: LIVENESS,
  });
  const told: string[] = [];
  changes = told;
  hub.onChange((nodeId, connected) => told.push(`${nodeId} ${connected}`));
});

afterEach(() => {
  hub.close();
  nodes.close();
});

function tunnelOf(nodeId: string): TunnelTransport {
  const tunnel = hub.get(nodeId);
  if (tunnel === null) throw new Error("no tunnel");
  return tunnel;
}

/** Calls and waits for the end of the answer. */
function call(tunnel: TunnelTransport): Promise<string> {
  return new Promise((resolve, reject) => {
    let received = "";
    const handler: TunnelHandler = {
      onHeaders: () => undefined,
      onData: (chunk) => {
        received += chunk.toString();
        return true;
      },
      onEnd: () => resolve(received),
      onError: reject,
    };
    tunnel.open(GET, handler);
  });
}

const answer =
  (text: string) =>
  (request: NodeRequest): void => {
    request.respond(200);
    request.end(text);
  };

describe("the tunnel hub", () => {
  beforeEach(async () => {
    nodes = new FakeNodes(hub);
    await nodes.listen();
  });

  test("limits a node to four tunnels, however long the calls through older ones take", async () => {
    const older = [];
    for (let n = 0; n < 4; n++) {
      const node = await nodes.connect("a");
      // The tunnel stays open for this call.
      node.onRequest = () => undefined;
      older.push(call(tunnelOf("a")).catch(() => `cut ${n}`));
    }
    await nodes.connect("a");
    expect(await Promise.race(older)).toBe("cut 0");
  });

  test("responds with 101, and its calls reach the node", async () => {
    const node = await nodes.connect("a");
    node.onRequest = answer("hi");
    expect(node.answer).toMatch(/^HTTP\/1\.1 101 /);
    expect(node.answer).toContain("Upgrade: fairlead-tunnel\r\n");
    expect(await call(tunnelOf("a"))).toBe("hi");
    expect(hub.get("b")).toBeNull();
    expect(changes).toEqual(["a true"]);
  });

  test("knows since when a node has been without a tunnel", async () => {
    expect(hub.lostAt("a")).toBeNull();
    const before = Date.now();
    const { socket } = await nodes.connectSilently("a");
    expect(hub.lostAt("a")).toBeNull();
    socket.destroy();
    await vi.waitFor(() => expect(hub.get("a")).toBeNull());
    expect(hub.lostAt("a")).toBeGreaterThanOrEqual(before);
    await nodes.connect("a");
    expect(hub.lostAt("a")).toBeNull();
  });

  test("lets a call wait, for a limited time, for a node that reconnects after a server restart", async () => {
    expect(await hub.arrival(["a"], 5)).toBe(false);
    const arrived = hub.arrival(["a", "b"], 30_000);
    await nodes.connect("c");
    await nodes.connect("b");
    expect(await arrived).toBe(true);
    expect(await hub.arrival(["b"], 0)).toBe(true);
  });

  test("does not wait for a node long after the server's start", async () => {
    const clock = new TestClock();
    const bounds = new BoundCounters();
    const old = new TunnelHub({ log: pino({ level: "silent" }), clock, bounds });
    expect(old.isReturning()).toBe(true);
    clock.advance(60_000);
    expect(old.isReturning()).toBe(false);
    expect(await old.arrival(["a"], 600_000)).toBe(false);
    old.close();
  });

  test("replaces a tunnel with a newer one, and the older one closes after its calls finish", async () => {
    const older = await nodes.connect("a");
    let running: NodeRequest | undefined;
    older.onRequest = (request) => {
      running = request;
      request.respond(200);
      request.write("old ");
    };
    const oldTunnel = tunnelOf("a");
    const oldCall = call(oldTunnel);
    await vi.waitFor(() => expect(running).toBeDefined());
    const newer = await nodes.connect("a");
    newer.onRequest = answer("new");
    expect(tunnelOf("a")).not.toBe(oldTunnel);
    expect(await call(tunnelOf("a"))).toBe("new");
    await expect(call(oldTunnel)).rejects.toThrow("the tunnel is closed");
    running?.end("end");
    expect(await oldCall).toBe("old end");
    await vi.waitFor(() => expect(older.isClosed).toBe(true));
    expect(await call(tunnelOf("a"))).toBe("new");
    expect(changes).toEqual(["a true"]);
  });

  test("drains a node: its running calls finish, and new ones are refused until it is released", async () => {
    const node = await nodes.connect("a");
    let running: NodeRequest | undefined;
    node.onRequest = (request) => {
      running = request;
      request.respond(200);
    };
    const last = call(tunnelOf("a"));
    await vi.waitFor(() => expect(running).toBeDefined());
    let drained = false;
    const draining = hub.drain("a").then(() => {
      drained = true;
    });
    expect(hub.get("a")).toBeNull();
    expect(drained).toBe(false);
    running?.end("whole");
    expect(await last).toBe("whole");
    await draining;
    await hub.drain("a");
    await hub.drain("unknown");
    expect([hub.get("a"), hub.toDaemon("a")]).toEqual([null, expect.anything()]);
    node.onRequest = answer("");
    hub.hold(new Set());
    expect(await call(tunnelOf("a"))).toBe("");
  });

  test("refuses calls to held nodes that connect later, and a drain ends when the tunnel is lost", async () => {
    hub.hold(new Set(["a"]));
    const node = await nodes.connect("a");
    expect(hub.get("a")).toBeNull();
    hub.hold(new Set());
    const lost = call(tunnelOf("a")).catch(() => "lost");
    const draining = hub.drain("a");
    node.socket.resetAndDestroy();
    await draining;
    expect(await lost).toBe("lost");
  });

  test.each<[string, (node: Awaited<ReturnType<FakeNodes["connect"]>>) => unknown]>([
    ["ends its connection", ({ socket }) => socket.end()],
    ["resets its connection", ({ socket }) => socket.resetAndDestroy()],
    ["is disconnected", () => hub.disconnect("a")],
  ])("fails the calls of a node that %s, and reports the node as gone", async (_name, lose) => {
    const node = await nodes.connect("a");
    node.onRequest = (request) => {
      request.respond(200);
      request.write("half");
      setImmediate(() => lose(node));
    };
    await expect(call(tunnelOf("a"))).rejects.toThrow();
    await vi.waitFor(() => expect(changes).toEqual(["a true", "a false"]));
    expect(hub.get("a")).toBeNull();
  });

  test("detects a node that does not answer pings", async () => {
    await nodes.connectSilently("a");
    await expect(call(tunnelOf("a"))).rejects.toThrow("ping");
    await vi.waitFor(() => expect(changes).toEqual(["a true", "a false"]));
  });

  test("fails only the call whose stream the node resets", async () => {
    const node = await nodes.connect("a");
    node.onRequest = (request) => {
      request.respond(200);
      request.write("half");
      request.cut();
    };
    await expect(call(tunnelOf("a"))).rejects.toThrow("the other side broke off");
    node.onRequest = answer("hi");
    expect(await call(tunnelOf("a"))).toBe("hi");
  });

  test("refuses tunnels with 503 after it was closed", async () => {
    await nodes.connect("a");
    hub.close();
    const node = await nodes.connect("b");
    expect(node.answer).toMatch(/^HTTP\/1\.1 503 /);
    expect(hub.get("b")).toBeNull();
  });

  test("ignores a connection that was lost while it was authenticated", () => {
    const socket = new PassThrough();
    socket.destroy();
    hub.attach("a", { socket, head: Buffer.alloc(0) });
    expect(hub.get("a")).toBeNull();
    expect(changes).toEqual([]);
  });
});
