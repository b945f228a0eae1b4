import { PassThrough } from "node:stream";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { FakeNodes, type NodeRequest } from "../testing/fake-node.ts";
import { TunnelHub } from "./tunnel-hub.ts";
import type { TunnelHandler, TunnelTransport } from "./tunnel-transport.ts";

const LIVENESS = { pingIntervalMs: 20, pingTimeoutMs: 300 };
const GET = { workload: "engine", method: "GET", path: "/", headers: {}, body: [] };

let hub: TunnelHub;
let nodes: FakeNodes;
let changes: string[];

beforeEach(async () => {
  hub = new TunnelHub({ log: pino({ level: "silent" }), liveness: LIVENESS });
  nodes = new FakeNodes(hub);
  const told: string[] = [];
  changes = told;
  hub.onChange((nodeId, connected) => told.push(`${nodeId} ${connected}`));
  await nodes.listen();
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
  ({ stream }: NodeRequest): void => {
    stream.respond({ ":status": 200 });
    stream.end(text);
  };

describe("the hub", () => {
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
      request.stream.respond({ ":status": 200 });
      request.stream.write("old ");
    };
    const oldTunnel = tunnelOf("a");
    const oldCall = call(oldTunnel);
    await vi.waitFor(() => expect(running).toBeDefined());
    const newer = await nodes.connect("a");
    newer.onRequest = answer("new");
    expect(tunnelOf("a")).not.toBe(oldTunnel);
    expect(await call(tunnelOf("a"))).toBe("new");
    await expect(call(oldTunnel)).rejects.toThrow("GOAWAY");
    running?.stream.end("end");
    expect(await oldCall).toBe("old end");
    await vi.waitFor(() => expect(older.session?.destroyed).toBe(true));
    expect(await call(tunnelOf("a"))).toBe("new");
    expect(changes).toEqual(["a true"]);
  });

  test("drains a node: its running calls end, and new ones find no way until it is let go", async () => {
    const node = await nodes.connect("a");
    let running: NodeRequest | undefined;
    node.onRequest = (request) => {
      running = request;
      request.stream.respond({ ":status": 200 });
    };
    const last = call(tunnelOf("a"));
    await vi.waitFor(() => expect(running).toBeDefined());
    let drained = false;
    const draining = hub.drain("a").then(() => {
      drained = true;
    });
    expect(hub.get("a")).toBeNull();
    expect(drained).toBe(false);
    running?.stream.end("whole");
    expect(await last).toBe("whole");
    await draining;
    await hub.drain("a");
    await hub.drain("unknown");
    expect([hub.get("a"), hub.toDaemon("a")]).toEqual([null, expect.anything()]);
    node.onRequest = ({ stream }) => stream.respond({ ":status": 200 }, { endStream: true });
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
    node.onRequest = ({ stream }) => {
      stream.respond({ ":status": 200 });
      stream.write("half");
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
    node.onRequest = ({ stream }) => {
      stream.respond({ ":status": 200 });
      stream.write("half", () => stream.destroy(new Error("broken")));
    };
    await expect(call(tunnelOf("a"))).rejects.toThrow("NGHTTP2_INTERNAL_ERROR");
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

  test("ignores a connection that was lost while it was checked", () => {
    const socket = new PassThrough();
    socket.destroy();
    hub.attach("a", { socket, head: Buffer.alloc(0), protocols: undefined });
    expect(hub.get("a")).toBeNull();
    expect(changes).toEqual([]);
  });
});
