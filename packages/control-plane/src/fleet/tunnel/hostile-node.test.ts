import type { Socket } from "node:net";
import { duplexPair } from "node:stream";
import { systemClock } from "@fairlead/protocol/values/clock";
import { writeHead } from "@fairlead/wire/tunnel-heads";
import type { StreamTransport } from "@fairlead/wire/tunnel-transport";
import {
  FRAME_FLAG,
  FRAME_HEAD_BYTES,
  FRAME_TYPE,
  type FrameHead,
  FrameReader,
  writeFrameHead,
} from "@fairlead/wire/yamux/frames";
import { FIRST_WINDOW_BYTES } from "@fairlead/wire/yamux/stream";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { BoundCounters } from "../../telemetry/bounds/bound-counters.ts";
import { FakeNodes } from "./testing/fake-node.ts";
import { CallLog } from "./tunnel.fixture.ts";
import { TunnelHub } from "./tunnel-hub.ts";

const GET = { workload: "engine", method: "GET", path: "/", headers: {}, body: [] };
const { data, windowUpdate, ping, goAway } = FRAME_TYPE;
const { syn, ack, fin } = FRAME_FLAG;
/** More than a session ever accepts at once. */
const FLOOD = 40_000;

function frame(head: Partial<FrameHead> & Pick<FrameHead, "type">, payload: Buffer = Buffer.alloc(0)): Buffer {
  const bytes = Buffer.alloc(FRAME_HEAD_BYTES);
  writeFrameHead({ flags: 0, streamId: 0, length: payload.length, ...head }, bytes, 0);
  return Buffer.concat([bytes, payload]);
}

const flood = (of: Buffer): Buffer => Buffer.concat(Array.from({ length: FLOOD }, () => of));

/** A daemon that speaks frames as it likes. */
class HostileNode {
  readonly streams: number[] = [];
  readonly #socket: Socket;

  constructor(socket: Socket) {
    this.#socket = socket;
    const reader = new FrameReader({
      onFrame: ({ flags, streamId }) => {
        if ((flags & syn) !== 0 && streamId !== 0) this.streams.push(streamId);
      },
      onPayload: () => undefined,
    });
    socket.on("data", (bytes: Buffer) => reader.push(bytes));
    socket.resume();
  }

  get isCutOff(): boolean {
    return this.#socket.destroyed || this.#socket.readableEnded;
  }

  say(...frames: readonly Buffer[]): void {
    for (const one of frames) if (this.#socket.writable) this.#socket.write(one);
  }

  /** A whole response. */
  answer(streamId: number, body = "a"): void {
    const head = writeHead({ status: 200, headers: { "content-length": String(body.length) } });
    this.say(frame({ type: data, flags: ack | fin, streamId }, Buffer.concat([head, Buffer.from(body)])));
  }
}

let hub: TunnelHub;
let nodes: FakeNodes;
let bounds: BoundCounters;
let warnings: string[];
let hostile: HostileNode;
let toHostile: StreamTransport;
let honest: StreamTransport;

beforeEach(async () => {
  warnings = [];
  bounds = new BoundCounters();
  const log = pino({ level: "warn" }, { write: (line) => void warnings.push(line) });
  hub = new TunnelHub({ log, clock: systemClock, bounds });
  nodes = new FakeNodes(hub);
  await nodes.listen();
  hostile = new HostileNode((await nodes.connectSilently("hostile")).socket);
  const node = await nodes.connect("honest");
  node.onRequest = (request) => {
    request.respond(200);
    request.end("fine");
  };
  const [bad, good] = [hub.get("hostile"), hub.get("honest")];
  if (bad === null || good === null) throw new Error("no tunnel");
  [toHostile, honest] = [bad, good];
});

afterEach(() => {
  hub.close();
  nodes.close();
});

/** @returns the log of a call that the hostile node has received, and the call's stream. */
async function call(log = new CallLog()): Promise<{ log: CallLog; streamId: number }> {
  const before = hostile.streams.length;
  toHostile.open(GET, log);
  await expect.poll(() => hostile.streams.length).toBe(before + 1);
  return { log, streamId: hostile.streams.at(-1) ?? 0 };
}

/** The other node's tunnel serves every call meanwhile. */
async function expectOthersServed(attack: () => void): Promise<void> {
  const logs = Array.from({ length: 20 }, () => new CallLog());
  for (const log of logs.slice(0, 10)) honest.open(GET, log);
  attack();
  for (const log of logs.slice(10)) honest.open(GET, log);
  await expect.poll(() => logs.filter(({ text }) => text === "200|fine|end")).toHaveLength(logs.length);
}

async function expectCutOff(bound: "tunnel_frames" | "tunnel_window"): Promise<void> {
  await expect.poll(() => hostile.isCutOff).toBe(true);
  await expect.poll(() => hub.get("hostile")).toBeNull();
  expect(bounds.counts.get(bound)).toBe(1);
  expect(warnings).toHaveLength(1);
  expect(warnings[0]).toContain("protocol violation");
  expect(hub.get("honest")).not.toBeNull();
}

describe("a hostile node", () => {
  test.each<[string, (streamId: number) => Buffer]>([
    ["pings", () => frame({ type: ping, flags: syn, length: 1 })],
    ["ping responses", () => frame({ type: ping, flags: ack, length: 1 })],
    ["empty window updates", (streamId) => frame({ type: windowUpdate, streamId })],
    ["window updates of one byte", (streamId) => frame({ type: windowUpdate, streamId, length: 1 })],
    ["empty data", (streamId) => frame({ type: data, streamId })],
    ["end-of-stream frames", (streamId) => frame({ type: data, flags: fin, streamId })],
    ["bytes for streams that never existed", () => frame({ type: data, streamId: 99_999 }, Buffer.from("x"))],
    ["window updates for streams that never existed", () => frame({ type: windowUpdate, streamId: 99_999, length: 1 })],
    ["go-away frames", () => frame({ type: goAway })],
  ])("is cut off when it floods its tunnel with %s", async (_name, of) => {
    const { streamId } = await call();
    await expectOthersServed(() => hostile.say(flood(of(streamId))));
    await expectCutOff("tunnel_frames");
  });

  test.each<[string, (streamId: number) => Buffer[]]>([
    [
      "a window that grows beyond its maximum",
      (streamId) => [0, 1].map(() => frame({ type: windowUpdate, streamId, length: 0xffff_ffff })),
    ],
    [
      "more bytes than the window",
      (streamId) => [frame({ type: data, streamId, length: 2 ** 31 }), Buffer.alloc(2 * FIRST_WINDOW_BYTES)],
    ],
    [
      "bytes after the end of a stream",
      (streamId) => [
        frame({ type: data, streamId }, Buffer.concat([writeHead({ status: 200, headers: {} }), Buffer.from("x")])),
        frame({ type: data, flags: fin, streamId }, Buffer.from("x")),
        frame({ type: data, streamId }, Buffer.from("x")),
      ],
    ],
    ["a stream that it opens", () => [frame({ type: data, flags: syn, streamId: 2 }, Buffer.from("x"))]],
    ["a stream that it opens in place of a call", (streamId) => [frame({ type: windowUpdate, flags: syn, streamId })]],
    ["an unknown frame", () => [Buffer.alloc(FRAME_HEAD_BYTES, 9)]],
  ])("is cut off when it breaks the protocol with %s", async (_name, attack) => {
    const log = new CallLog();
    log.takes = false;
    const { streamId } = await call(log);
    await expectOthersServed(() => hostile.say(...attack(streamId)));
    await expectCutOff("tunnel_window");
    await expect.poll(() => log.text).toContain("failed: ");
  });

  test("is cut off when it announces gigabytes for a stream that no longer exists", async () => {
    hostile.say(frame({ type: data, streamId: 77, length: 0xffff_ffff }));
    await expectCutOff("tunnel_frames");
  });

  test.each<[string, Buffer[]]>([
    ["too long", [Buffer.from([0, 3, 0, 0]), Buffer.alloc(200_000, " ")]],
    ["of too many headers", [headOf({ "set-cookie": Array(400).fill("a") })]],
  ])("fails one call with a response head that is %s", async (_name, pieces) => {
    const { log, streamId } = await call();
    await expectOthersServed(() => hostile.say(...pieces.map((piece) => frame({ type: data, streamId }, piece))));
    await expect.poll(() => log.text).toContain("failed: a head");
    expect(bounds.counts.get("tunnel_head_bytes")).toBe(1);
    const next = await call();
    hostile.answer(next.streamId);
    await expect.poll(() => next.log.text).toBe("200|a|end");
  });

  test("ends only its own tunnel when its response makes a call throw", async () => {
    const log = new CallLog();
    log.onHeaders = () => {
      throw new Error("unexpected");
    };
    const { streamId } = await call(log);
    await expectOthersServed(() => hostile.answer(streamId));
    await expect.poll(() => hostile.isCutOff).toBe(true);
    await expect.poll(() => log.text).toBe("failed: a call failed over what was received");
    expect(warnings[0]).toContain("unexpected");
  });

  test("may send a response head byte by byte", async () => {
    const { log, streamId } = await call();
    const head = writeHead({ status: 200, headers: { "x-long": "x".repeat(4000), "content-length": "0" } });
    hostile.say(...Array.from(head, (byte) => frame({ type: data, streamId }, Buffer.of(byte))));
    hostile.say(frame({ type: data, flags: fin, streamId }));
    await expect.poll(() => log.text).toBe("200|end");
  });

  test("fills no more memory than its share when callers do not read", async () => {
    const SHARE = 512;
    const calls = Array.from({ length: SHARE + 2 }, () => Object.assign(new CallLog(), { takes: false }));
    for (const log of calls) toHostile.open(GET, log);
    await expect.poll(() => hostile.streams.length).toBe(calls.length);
    const head = writeHead({ status: 200, headers: {} });
    // The first byte of each body makes its reader pause, and the rest waits.
    const first = Buffer.concat([head, Buffer.from("x")]);
    const rest = Buffer.alloc(FIRST_WINDOW_BYTES - first.length, "x");
    for (const streamId of hostile.streams) {
      hostile.say(frame({ type: data, flags: ack, streamId }, first), frame({ type: data, streamId }, rest));
    }
    await expect.poll(() => bounds.counts.get("tunnel_held_bytes") ?? 0).toBeGreaterThan(0);
    const cut = calls.filter(({ text }) => text.includes("failed: too much waits for slow readers"));
    expect(cut.length).toBeLessThan(4);
    expect(hostile.isCutOff).toBe(false);
    await expectOthersServed(() => undefined);
  });

  test("is cut off when it reads nothing, even if it keeps sending", async () => {
    // Each interval counts as a third of the time that a peer may take.
    const patient = new TunnelHub({
      log: pino({ level: "silent" }),
      clock: systemClock,
      bounds,
      liveness: { pingIntervalMs: 20_000, pingTimeoutMs: 20_000 },
    });
    const [near, far] = duplexPair();
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "setTimeout", "clearTimeout"] });
    try {
      patient.attach("deaf", { socket: near, head: Buffer.alloc(0) });
      await vi.waitUntil(() => patient.get("deaf") !== null);
      const log = new CallLog();
      patient.get("deaf")?.open({ ...GET, method: "POST", body: [Buffer.alloc(1024 * 1024)] }, log);
      for (let count = 0; count < 5; count += 1) {
        await new Promise(setImmediate);
        far.write(frame({ type: ping, flags: syn, length: count }));
        await vi.advanceTimersByTimeAsync(20_000);
      }
      expect(log.text).toBe("failed: nothing was read for 60000 ms");
      expect(bounds.counts.get("tunnel_stalled")).toBe(1);
    } finally {
      vi.useRealTimers();
      patient.close();
    }
  });

  test("has no more than four tunnels at a time", async () => {
    const { log } = await call();
    const sockets: Socket[] = [];
    for (let count = 0; count < 6; count += 1) {
      const { socket } = await nodes.connectSilently("hostile");
      hostile = new HostileNode(socket);
      sockets.push(socket);
      const tunnel = hub.get("hostile");
      if (tunnel === null) throw new Error("no tunnel");
      toHostile = tunnel;
      await call();
    }
    await expect.poll(() => log.text).toBe("failed: the node has newer tunnels");
    await expect.poll(() => sockets.filter((socket) => !socket.destroyed && !socket.readableEnded)).toHaveLength(4);
    expect(bounds.counts.get("tunnels_per_node")).toBe(3);
  });
});

function headOf(headers: object): Buffer {
  const text = Buffer.from(JSON.stringify({ status: 200, headers }));
  const length = Buffer.alloc(4);
  length.writeUInt32BE(text.length);
  return Buffer.concat([length, text]);
}
