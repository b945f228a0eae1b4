import { PassThrough } from "node:stream";
import { TUNNEL_PROTOCOLS } from "@fairlead/protocol/daemon-link";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { FakeNodes } from "../testing/fake-node.ts";
import type { NodeRequest } from "../testing/node-request.ts";
import { TunnelHub } from "./tunnel-hub.ts";
import type { TunnelHandler, TunnelTransport } from "./tunnel-transport.ts";

const LIVENESS = { pingIntervalMs: 20, pingTimeoutMs: 300 };
const GET = { workload: "engine", method: "GET", path: "/", headers: {}, body: [] };

let hub: TunnelHub;
let nodes: FakeNodes;
let changes: string[];

beforeEach(() => {
  hub = new TunnelHub({ log: pino({ level: "silent" }), liveness: LIVENESS });
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

/** How calls fail. */
const WORDS = {
  h2: { closed: "GOAWAY", reset: "NGHTTP2_INTERNAL_ERROR" },
  yamux: { closed: "the tunnel is closed", reset: "the other side broke off" },
} as const;

describe.each(TUNNEL_PROTOCOLS)("the hub, over %s,", (protocol) => {
  beforeEach(async () => {
    nodes = new FakeNodes(hub, protocol);
    await nodes.listen();
  });

  test("answers 101 and reaches the node", async () => {
    const node = await nodes.connect("a");
    node.onRequest = answer("hi");
    expect(node.answer).toMatch(/^HTTP\/1\.1 101 /);
    expect(node.answer).toContain("Upgrade: fairlead-tunnel\r\n");
    expect(await call(tunnelOf("a"))).toBe("hi");
    expect(hub.get("b")).toBeNull();
    expect(changes).toEqual(["a true"]);
  });

  test("lets a newer tunnel take over, while the older one ends its calls and then closes", async () => {
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
    await expect(call(oldTunnel)).rejects.toThrow(WORDS[protocol].closed);
    running?.end("end");
    expect(await oldCall).toBe("old end");
    await vi.waitFor(() => expect(older.isClosed).toBe(true));
    expect(await call(tunnelOf("a"))).toBe("new");
    expect(changes).toEqual(["a true"]);
  });

  test("drains a node: its running calls end, and new ones find no way until it is let go", async () => {
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

  test("holds calls back from nodes that connect later, and a drain ends with a tunnel that is lost", async () => {
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
    ["resets it", ({ socket }) => socket.resetAndDestroy()],
    ["is disconnected", () => hub.disconnect("a")],
  ])("fails the calls of a node that %s, and tells that it is gone", async (_name, lose) => {
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

  test("notices a node that does not answer pings", async () => {
    await nodes.connectSilently("a");
    await expect(call(tunnelOf("a"))).rejects.toThrow("ping");
    await vi.waitFor(() => expect(changes).toEqual(["a true", "a false"]));
  });

  test("fails a call whose stream the node resets, and only that", async () => {
    const node = await nodes.connect("a");
    node.onRequest = (request) => {
      request.respond(200);
      request.write("half");
      request.cut();
    };
    await expect(call(tunnelOf("a"))).rejects.toThrow(WORDS[protocol].reset);
    node.onRequest = answer("hi");
    expect(await call(tunnelOf("a"))).toBe("hi");
  });

  test("takes no tunnel after it was closed, and says so", async () => {
    await nodes.connect("a");
    hub.close();
    const node = await nodes.connect("b");
    expect(node.answer).toMatch(/^HTTP\/1\.1 503 /);
    expect(hub.get("b")).toBeNull();
  });
});

describe("the hub's answer to a daemon", () => {
  test.each([
    ["yamux, h2", "yamux"],
    ["h2,yamux", "yamux"],
    ["yamux", "yamux"],
    ["h2", "h2"],
    ["quic, h2", "h2"],
    ["quic", "h2"],
    ["", "h2"],
    [undefined, "h2"],
  ] as const)("that speaks %s names %s, which both speak from then on", async (offer, protocol) => {
    nodes = new FakeNodes(hub, offer);
    await nodes.listen();
    const node = await nodes.connect("a");
    expect(node.answer).toContain(`\r\nfairlead-tunnel-protocol: ${protocol}\r\n`);
    node.onRequest = answer("hi");
    expect(await call(tunnelOf("a"))).toBe("hi");
  });

  test("is none when the connection was lost while it was checked", () => {
    const socket = new PassThrough();
    socket.destroy();
    hub.attach("a", { socket, head: Buffer.alloc(0), protocols: undefined });
    expect(hub.get("a")).toBeNull();
    expect(changes).toEqual([]);
  });
});
