import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { LINK_FLOODED, MAX_LINK_CALLS, MAX_LINK_MESSAGE_BYTES } from "@fairlead/protocol/daemon-link";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import WebSocket from "ws";
import { NODE_RATES } from "../../telemetry/bounds/node-rate-bounds.ts";
import { type NodeFixture, nodeFixture, OWNER, reportFor } from "../nodes/node.fixture.ts";
import { LinkHub } from "./link-hub.ts";
import { LinkServer } from "./link-server.ts";

/** One hostile node against the link: what it can make the control plane keep and do, counted. */

let fixture: NodeFixture;
let links: LinkServer;
let server: Server;
let nodeId: string;
let other: string;
const log = pino({ level: "silent" });

beforeEach(async () => {
  fixture = await nodeFixture();
  nodeId = (await fixture.createEnrolled("Box")).node.id;
  other = (await fixture.createEnrolled("Other")).node.id;
  const { reports, liveness, nodeSecrets: secrets, changes, clock, bounds } = fixture;
  const agentTokens = { issue: async () => ({ state: "none" as const }) };
  const hub = new LinkHub({ reports, liveness, secrets, agentTokens, changes, clock, bounds, log, resyncMs: 60_000 });
  links = new LinkServer({ ...fixture, log, links: hub });
  server = createServer();
  server.on("upgrade", (request, socket, head) =>
    links.accept({ request, socket, head, nodeId: request.url === "/other" ? other : nodeId }),
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});

afterEach(async () => {
  await links.close();
  await new Promise((resolve) => server.close(resolve));
  await fixture.close();
});

interface Reply {
  readonly id: number | null;
  readonly error?: { readonly data: { readonly code: string; readonly retryAfterMs?: number } };
  readonly result?: { readonly type: string; readonly data?: unknown };
}

/** A link that sends what it is told, and keeps what comes. */
class RawLink {
  readonly replies: Reply[] = [];
  readonly closed: Promise<readonly [code: number, reason: string]>;
  readonly socket: WebSocket;
  readonly #waiting = new Map<number | null, (reply: Reply) => void>();
  #id = 0;

  constructor(path = "/") {
    this.socket = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}${path}`);
    this.closed = new Promise((resolve) =>
      this.socket.once("close", (code: number, reason: Buffer) => resolve([code, reason.toString()])),
    );
    this.socket.on("message", (data: Buffer) => {
      const reply = JSON.parse(data.toString()) as Reply;
      this.replies.push(reply);
      this.#waiting.get(reply.id)?.(reply);
    });
    this.socket.on("error", () => undefined);
  }

  async opened(): Promise<this> {
    await new Promise((resolve) => this.socket.once("open", resolve));
    return this;
  }

  message(method: string, path: string, input: unknown): object {
    return { id: ++this.#id, method, params: { path, input } };
  }

  send(method: string, path: string, input: unknown): void {
    this.socket.send(JSON.stringify(this.message(method, path, input)));
  }

  /** @returns the reply to this call. */
  call(method: string, path: string, input: unknown): Promise<Reply> {
    this.send(method, path, input);
    return new Promise((resolve) => this.#waiting.set(this.#id, resolve));
  }
}

const open = (path?: string): Promise<RawLink> => new RawLink(path).opened();
const ponged = (link: RawLink): Promise<unknown> => {
  link.socket.ping();
  return new Promise((resolve) => link.socket.once("pong", resolve));
};
const HEARTBEAT = { epoch: "e", generation: 1 };

const event = (id: string, message = "m"): object => ({ id, at: "t", kind: "k", workloadId: null, message });
const batch = (name: string, size = 100): object[] => Array.from({ length: size }, (_, n) => event(`${name}.${n}`));

async function rowsOf(node: string): Promise<number> {
  const { rows } = await fixture.store.db
    .selectFrom("node_event")
    .select((eb) => eb.fn.countAll().as("rows"))
    .where("node_id", "=", node)
    .where("source_id", "is not", null)
    .executeTakeFirstOrThrow();
  return Number(rows);
}

const kindsOf = async (node: string): Promise<string[]> =>
  (await fixture.stores.events.list(node, { limit: 50, after: null })).map(({ kind }) => kind);

/** Sends without a pause until the link is closed. */
async function flood(
  link: RawLink,
  send: (n: number) => unknown,
  burst = 50,
): Promise<readonly [code: number, reason: string]> {
  for (let n = 0; link.socket.readyState === WebSocket.OPEN && n < 50_000; n++) {
    await send(n);
    if (n % burst === burst - 1) await new Promise((resolve) => setImmediate(resolve));
  }
  return link.closed;
}

describe("a node that floods its link", () => {
  it("writes only as many events as its rate allows, and other nodes and users are still served", async () => {
    const link = await open();
    const honest = await open("/other");
    const flooding = flood(link, (n) => link.send("mutation", "events", batch(String(n))));
    expect(await honest.call("mutation", "heartbeat", HEARTBEAT)).toMatchObject({ result: { type: "data" } });
    const desired = await fixture.reports.desiredState(other);
    const observation = { epoch: desired.epoch, generation: 1, workloadReports: [reportFor(desired)] };
    expect(await honest.call("mutation", "observe", observation)).toMatchObject({ result: { type: "data" } });
    expect(await fixture.nodes.get(OWNER, nodeId)).toMatchObject({ id: nodeId });
    expect([LINK_FLOODED, 1006]).toContain((await flooding)[0]);
    await vi.waitFor(async () => expect(await kindsOf(nodeId)).toContain("link_flooded"));
    expect(await rowsOf(nodeId)).toBeLessThanOrEqual(NODE_RATES.events.capacity + 1);
    expect(await honest.call("mutation", "heartbeat", HEARTBEAT)).toMatchObject({ result: { type: "data" } });
  });

  it("gains nothing from a new link, and the flood is in its history once an hour", async () => {
    for (let turn = 0; turn < 3; turn++) {
      const link = await open();
      await flood(link, (n) => link.send("mutation", "events", batch(`${turn}.${n}`)));
    }
    await vi.waitFor(async () => expect(await kindsOf(nodeId)).toContain("link_flooded"));
    expect(await rowsOf(nodeId)).toBeLessThanOrEqual(NODE_RATES.events.capacity + 1);
    expect((await kindsOf(nodeId)).filter((kind) => kind === "link_flooded")).toHaveLength(1);
  });

  it("rejects calls beyond a node's rate with the time to wait", async () => {
    const link = await open();
    const hello = { protocolVersions: [1], daemonVersion: "1", bootId: "b", host: HOST };
    for (let n = 0; n < NODE_RATES.hello.capacity; n++) {
      expect(await link.call("mutation", "hello", hello)).toMatchObject({ result: { type: "data" } });
    }
    const rejected = await link.call("mutation", "hello", hello);
    expect(rejected.error?.data).toMatchObject({ code: "TOO_MANY_REQUESTS", retryAfterMs: 2000 });
    expect(fixture.bounds.counts.get("link_call_rate")).toBe(1);
    fixture.clock.advance(2000);
    expect(await link.call("mutation", "hello", hello)).toMatchObject({ result: { type: "data" } });
  });

  it("closes the link of a node that does not stop after rejections", async () => {
    const link = await open();
    const bad = { workloadId: "x".repeat(65) };
    const reject = () => Promise.race([link.call("query", "workerToken", bad), link.closed]);
    expect(await flood(link, reject)).toEqual([LINK_FLOODED, "the daemon keeps sending calls that are rejected"]);
    expect(fixture.bounds.counts.get("link_rejections")).toBe(1);
  });

  it.each([
    ["messages", (link: RawLink) => link.socket.send("{")],
    // The library itself cuts off who sends pings faster than it can answer them.
    ["pings", (link: RawLink) => Promise.race([ponged(link), link.closed])],
    ["pongs", (link: RawLink) => link.socket.pong()],
    ["keep-alive texts", (link: RawLink) => link.socket.send("PONG")],
  ])("closes the link of a node that sends too many messages: %s", async (_what, send) => {
    const link = await open();
    link.socket.setMaxListeners(0);
    // A peer that is busy sending may miss the reason.
    expect([LINK_FLOODED, 1006]).toContain((await flood(link, () => send(link)))[0]);
    expect(fixture.bounds.counts.get("link_messages")).toBe(1);
  });

  it("closes the link of a node that sends too many bytes", async () => {
    const link = await open();
    const text = "x".repeat(MAX_LINK_MESSAGE_BYTES);
    expect([LINK_FLOODED, 1006]).toContain((await flood(link, () => link.socket.send(text), 1))[0]);
    expect(fixture.bounds.counts.get("link_messages")).toBe(1);
  });

  it("cuts a link with an oversized message", async () => {
    const link = await open();
    link.socket.send("x".repeat(MAX_LINK_MESSAGE_BYTES + 1));
    const [code] = await link.closed;
    expect([1009, LINK_FLOODED]).toContain(code);
    expect(fixture.bounds.counts.get("link_message_bytes")).toBe(1);
  });

  it("closes a link whose message is nested too deeply, before it is parsed", async () => {
    const link = await open();
    const parsed = vi.spyOn(JSON, "parse");
    link.socket.send(`{"id":1,"method":"mutation","params":${"[".repeat(500_000)}`);
    expect(await link.closed).toEqual([LINK_FLOODED, "a message is nested more than 64 levels deep"]);
    expect(parsed).not.toHaveBeenCalled();
    parsed.mockRestore();
  });

  it("accepts a batch up to the limit of concurrent calls, and closes the link on a larger one", async () => {
    const link = await open();
    const calls = (size: number) =>
      Array.from({ length: size }, () => link.message("mutation", "heartbeat", HEARTBEAT));
    link.socket.send(JSON.stringify(calls(MAX_LINK_CALLS)));
    await vi.waitFor(() => expect(link.replies).toHaveLength(MAX_LINK_CALLS));
    link.socket.send(`${" ".repeat(1000)}${JSON.stringify(calls(MAX_LINK_CALLS + 1))}`);
    expect((await link.closed)[0]).toBe(LINK_FLOODED);
    expect(link.replies).toHaveLength(MAX_LINK_CALLS);
  });

  it("closes a link with too many calls at the same time", async () => {
    const slow = Promise.withResolvers<void>();
    const beats = vi.spyOn(fixture.reports, "heartbeat").mockImplementation(() => slow.promise);
    const link = await open();
    for (let n = 0; n < MAX_LINK_CALLS; n++) link.send("mutation", "heartbeat", HEARTBEAT);
    await vi.waitFor(() => expect(beats).toHaveBeenCalledTimes(MAX_LINK_CALLS));
    link.send("mutation", "heartbeat", HEARTBEAT);
    expect((await link.closed)[0]).toBe(LINK_FLOODED);
    expect(beats).toHaveBeenCalledTimes(MAX_LINK_CALLS);
    slow.resolve();
  });

  it("ignores further messages of a link that it has closed, whether or not the daemon reads the close", async () => {
    const link = await open();
    const beats = vi.spyOn(fixture.reports, "heartbeat");
    const deep = `[${"[".repeat(100)}`;
    link.socket.send(deep);
    for (let n = 0; n < 10; n++) link.send("mutation", "heartbeat", HEARTBEAT);
    await link.closed;
    expect(beats).not.toHaveBeenCalled();
  });
});

describe("subscriptions", () => {
  const states = (link: RawLink): Reply[] => link.replies.filter(({ result }) => result?.type === "data");

  it("a second subscription ends the first, and a change is computed once for a link", async () => {
    const computed = vi.spyOn(fixture.reports, "desiredState");
    const link = await open();
    for (let n = 0; n < 5; n++) link.send("subscription", "desiredState", {});
    await vi.waitFor(() => {
      expect(link.replies.filter(({ result }) => result?.type === "stopped")).toHaveLength(4);
      expect(states(link).some(({ id }) => id === 5)).toBe(true);
    });
    computed.mockClear();
    const before = states(link).length;
    fixture.changes.emit({ nodeId, projectId: "prj_a", aspect: "desired" });
    await vi.waitFor(() => expect(states(link)).toHaveLength(before + 1));
    expect(computed).toHaveBeenCalledTimes(1);
  });

  it("20,000 subscriptions cost no more than the rate allows, and a later change is computed at most once", async () => {
    const computed = vi.spyOn(fixture.reports, "desiredState");
    const link = await open();
    for (let n = 0; n < 20_000; n++) link.send("subscription", "desiredState", {});
    expect((await link.closed)[0]).toBe(LINK_FLOODED);
    expect(computed.mock.calls.length).toBeLessThanOrEqual(NODE_RATES.desiredState.capacity);
    await vi.waitFor(() => expect(links.open).toBe(0));
    computed.mockClear();
    fixture.changes.emit({ nodeId, projectId: "prj_a", aspect: "desired" });
    const next = await open();
    await next.call("mutation", "heartbeat", HEARTBEAT).catch(() => undefined);
    expect(computed).not.toHaveBeenCalled();
  });

  it("cuts off a daemon that does not read its responses", async () => {
    const link = await open();
    link.send("subscription", "desiredState", {});
    await vi.waitFor(() => expect(states(link)).toHaveLength(1));
    const large = "x".repeat(1024 * 1024);
    const desired = await fixture.reports.desiredState(nodeId);
    vi.spyOn(fixture.reports, "desiredState").mockImplementation(async () => ({ ...desired, projectId: large }));
    link.socket.pause();
    for (let n = 0; n < 100 && links.open > 0; n++) {
      fixture.changes.emit({ nodeId, projectId: "prj_a", aspect: "desired" });
      await new Promise((resolve) => setImmediate(resolve));
      await new Promise((resolve) => setImmediate(resolve));
    }
    await vi.waitFor(() => expect(links.open).toBe(0));
    expect(fixture.bounds.counts.get("link_unread_bytes")).toBeGreaterThan(0);
    link.socket.terminate();
  });
});

describe("fields", () => {
  it("rejects an event with an overlong ID", async () => {
    const link = await open();
    const { error } = await link.call("mutation", "events", [event("x".repeat(900_000))]);
    expect(error?.data.code).toBe("BAD_REQUEST");
    expect(await rowsOf(nodeId)).toBe(0);
  });

  it("rejects a list that is too long without reading its items", async () => {
    const link = await open();
    const items = Array.from({ length: 1900 }, () => ({}));
    const reply = await link.call("mutation", "events", items);
    expect(reply.error?.data.code).toBe("BAD_REQUEST");
    expect(JSON.stringify(reply).length).toBeLessThan(2000);
  });
});

const HOST = {
  operatingSystem: "Debian",
  kernel: "6",
  architecture: "x64",
  hostName: "box",
  cpus: 2,
  memoryMb: 1,
  diskFreeMb: 1,
  dockerVersion: "20",
};
