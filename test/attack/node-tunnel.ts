import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { FRAME_FLAG, FRAME_TYPE, type FrameHead, FrameReader, writeFrameHead } from "@fairlead/wire/yamux/frames";
import * as fc from "fast-check";
import { openTunnelSocket } from "../../packages/daemon/src/tunnel/tunnel-upgrade.ts";
import { seededRandom } from "../support/money-calls.ts";
import { type Attack, drained, type Ground } from "./attack.ts";
import { bearer, call } from "./call.ts";
import { NODE_MODEL, type StageNode } from "./facts.ts";
import { mutate } from "./replies.ts";

/** A node with a valid identity, which does not keep to the tunnel's protocol, or keeps to it in the costliest way. */

/** One frame as it is sent; the payload of data has the stated length unless it is cut. */
interface SentFrame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly length: number;
}

export interface TunnelMove {
  readonly kind: Kind;
  /** Frames or bytes. */
  readonly count: number;
  /** Calls that run through the tunnel meanwhile. */
  readonly calls: number;
  readonly frames: readonly SentFrame[];
  readonly seed: number;
}

const frame: fc.Arbitrary<SentFrame> = fc.record({
  type: fc.nat(5),
  flags: fc.oneof(fc.nat(15), fc.nat(65_535)),
  streamId: fc.oneof(fc.nat(16), fc.nat(2 ** 32 - 1)),
  length: fc.oneof(fc.constantFrom(0, 1, 100, 262_144, 2 ** 31, 2 ** 32 - 1), fc.nat(4096)),
});

const STREAMS_MS = 1500;
const HOLD_MS = 800;
const CALL_MS = 4000;
const OPEN_MS = 4000;
const PIECE_FRAMES = 4096;
const MOST_FRAMES = 200_000;
const BODY_PIECE = 256 * 1024;

async function perform(made: TunnelMove, ground: Ground): Promise<void> {
  if (made.kind === "many-tunnels") return manyTunnels(made, ground);
  const tunnel = await HostileTunnel.open(ground);
  if (tunnel === null) return;
  const calls = Array.from({ length: made.calls }, () => callNode(tunnel.node, ground));
  await tunnel.untilStreams(made.calls);
  await misbehave(made, tunnel);
  await sleep(HOLD_MS);
  tunnel.destroy();
  await Promise.all(calls);
}

async function callNode(node: StageNode, ground: Ground): Promise<void> {
  const { key } = ground.facts.hostile.tunnel;
  const model = `${node.identifier}/${NODE_MODEL}`;
  const body = JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }] });
  const path = "/v1/chat/completions";
  const url = ground.facts.modelsUrl;
  ground.sent += 1;
  await call({ url, path, method: "POST", headers: bearer(key), body, deadlineMs: CALL_MS });
}

async function manyTunnels({ count }: TunnelMove, ground: Ground): Promise<void> {
  const tunnels = await Promise.all(Array.from({ length: Math.min(count, 100) }, () => HostileTunnel.open(ground)));
  await sleep(HOLD_MS);
  for (const tunnel of tunnels) tunnel?.destroy();
}

/** Whose turn it is of the nodes. */
let turn = 0;

/** The node's end of a tunnel, which sends frames as it is told. */
class HostileTunnel {
  readonly #socket: Socket;
  readonly #ground: Ground;
  readonly node: StageNode;
  /** That the server has opened. */
  readonly streams = new Set<number>();

  private constructor(socket: Socket, { node, ground }: { readonly node: StageNode; readonly ground: Ground }) {
    this.#socket = socket;
    this.node = node;
    this.#ground = ground;
    const reader = new FrameReader({
      onFrame: ({ flags, streamId }) => void ((flags & FRAME_FLAG.syn) !== 0 && this.streams.add(streamId)),
      onPayload: () => undefined,
    });
    socket.on("data", (bytes: Buffer) => reader.push(bytes));
    socket.on("error", () => undefined);
  }

  /** Of the first of the nodes that is let in: each may open a tunnel only so often. */
  static async open(ground: Ground): Promise<HostileTunnel | null> {
    const { nodes } = ground.facts.hostile.tunnel;
    for (let tries = 0; tries < nodes.length; tries++) {
      const node = nodes[turn++ % nodes.length];
      const tunnel = node === undefined ? null : await HostileTunnel.#openOf(node, ground);
      if (tunnel !== null) return tunnel;
    }
    return null;
  }

  static async #openOf(node: StageNode, ground: Ground): Promise<HostileTunnel | null> {
    const { platformUrl, nodeId } = node.identity;
    const token = node.identityToken;
    const signal = AbortSignal.timeout(OPEN_MS);
    ground.sent += 1;
    try {
      const opened = await openTunnelSocket({ platformUrl, nodeId, token, certificateAuthority: undefined, signal });
      ground.open.add(opened.socket);
      return new HostileTunnel(opened.socket, { node, ground });
    } catch {
      return null;
    }
  }

  async untilStreams(count: number): Promise<void> {
    const waited = STREAMS_MS / 50;
    for (let turn = 0; turn < waited && this.streams.size < count && !this.#socket.destroyed; turn++) await sleep(50);
  }

  frame(head: SentFrame, payload?: Buffer): Promise<void> {
    this.#ground.sent += 1;
    return this.bytes(frameBytes(head, payload));
  }

  /** Many frames, in large pieces. */
  async frames(count: number, headOf: (n: number) => SentFrame): Promise<void> {
    const most = Math.min(count, MOST_FRAMES);
    for (let from = 0; from < most && !this.#socket.destroyed; from += PIECE_FRAMES) {
      const piece = Array.from({ length: Math.min(PIECE_FRAMES, most - from) }, (_, n) => frameBytes(headOf(from + n)));
      this.#ground.sent += piece.length;
      await this.bytes(Buffer.concat(piece));
    }
  }

  data(streamId: number, payload: Buffer, flags = 0): Promise<void> {
    return this.frame({ type: FRAME_TYPE.data, flags, streamId, length: payload.length }, payload);
  }

  async bytes(bytes: Buffer): Promise<void> {
    if (this.#socket.destroyed) return;
    this.#socket.write(bytes);
    await drained(this.#socket);
  }

  destroy(): void {
    this.#socket.destroy();
  }
}

function frameBytes({ type, flags, streamId, length }: SentFrame, payload?: Buffer): Buffer {
  const head = Buffer.alloc(12);
  // What it cannot be is what this is for.
  writeFrameHead({ type: type as FrameHead["type"], flags, streamId, length }, head, 0);
  return payload === undefined ? head : Buffer.concat([head, payload]);
}

/** A response's head as the tunnel has it: its length, then JSON. */
function headBytes(text: string, length = Buffer.byteLength(text)): Buffer {
  const head = Buffer.alloc(4 + Buffer.byteLength(text));
  head.writeUInt32BE(length >>> 0);
  head.write(text, 4);
  return head;
}

const GOOD_HEAD = JSON.stringify({ status: 200, headers: { "content-type": "application/json" } });

function payloadOf({ type, length }: SentFrame): Buffer | undefined {
  return type === FRAME_TYPE.data ? Buffer.alloc(Math.min(length, BODY_PIECE), "[") : undefined;
}

type Misbehave = (tunnel: HostileTunnel, made: TunnelMove) => Promise<void>;

/** Frames without end of one form. @param headOf the nth, of the first stream that the server has opened. */
const flood =
  (headOf: (n: number, first: number) => SentFrame): Misbehave =>
  (tunnel, { count }) => {
    const first = [...tunnel.streams][0] ?? 1;
    return tunnel.frames(count, (n) => headOf(n, first));
  };

const { data, windowUpdate, ping, goAway } = FRAME_TYPE;

/** What is done on the connection. */
const ON_CONNECTION = {
  frames: async (tunnel, { frames }) => {
    for (const each of frames) await tunnel.frame(each, payloadOf(each));
  },
  raw: (tunnel, { count, seed }) => {
    const random = seededRandom(seed);
    return tunnel.bytes(Buffer.from(Array.from({ length: Math.min(count, 10_000) }, () => 256 * random())));
  },
  h2: (tunnel) => tunnel.bytes(Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), Buffer.alloc(10_000)])),
  "ping-flood": flood((n) => ({ type: ping, flags: FRAME_FLAG.syn, streamId: 0, length: n })),
  "ping-replies": flood((n) => ({ type: ping, flags: FRAME_FLAG.ack, streamId: 0, length: n })),
  "open-flood": flood((n) => ({ type: data, flags: FRAME_FLAG.syn, streamId: 2 + 2 * n, length: 0 })),
  "unknown-streams": flood((n) => ({ type: data, flags: 0, streamId: 1001 + 2 * n, length: 0 })),
  "window-flood": flood((_, streamId) => ({ type: windowUpdate, flags: 0, streamId, length: 1 })),
  "empty-frames": flood((_, streamId) => ({ type: data, flags: 0, streamId, length: 0 })),
  "reset-flood": flood((_, streamId) => ({ type: data, flags: FRAME_FLAG.rst, streamId, length: 0 })),
  "go-away": (tunnel, { seed }) => tunnel.frame({ type: goAway, flags: 0, streamId: 0, length: seed % 3 }),
} as const satisfies Readonly<Record<string, Misbehave>>;

type MisbehaveOn = (tunnel: HostileTunnel, streamId: number, made: TunnelMove) => Promise<void>;

/** What is done on each stream that the server has opened. */
const ON_STREAM = {
  "no-reply": () => Promise.resolve(),
  "giant-head": (tunnel, streamId, { count }) =>
    inPieces(tunnel, streamId, headBytes(`{"status":200,"headers":{"a":"${"x".repeat(count)}"}}`)),
  "head-too-long": (tunnel, streamId) => tunnel.data(streamId, headBytes("{", 2 ** 32 - 1)),
  "nested-head": (tunnel, streamId, { count }) =>
    inPieces(tunnel, streamId, headBytes(`{"status":200,"headers":${"[".repeat(count)}`)),
  "many-headers": (tunnel, streamId, { count }) => {
    const names = Array.from({ length: Math.min(count, 50_000) }, (_, n) => `"h${n}":"v"`);
    return inPieces(tunnel, streamId, headBytes(`{"status":200,"headers":{${names.join(",")}}}`));
  },
  "mutated-head": (tunnel, streamId, { seed }) =>
    tunnel.data(streamId, mutate(headBytes(GOOD_HEAD).toString("latin1"), seededRandom(seed + streamId))),
  "slow-head": async (tunnel, streamId, { count }) => {
    for (const byte of headBytes(GOOD_HEAD).subarray(0, count)) await tunnel.data(streamId, Buffer.from([byte]));
  },
  "no-head": (tunnel, streamId) => tunnel.data(streamId, Buffer.alloc(1000, "x"), FRAME_FLAG.fin),
  "beyond-window": async (tunnel, streamId, { count }) => {
    await tunnel.data(streamId, headBytes(GOOD_HEAD));
    for (let n = 0; n < Math.min(count, 60); n++) await tunnel.data(streamId, Buffer.alloc(BODY_PIECE, "["));
  },
  "window-overflow": async (tunnel, streamId, { count }) => {
    const head = { type: windowUpdate, flags: 0, streamId, length: 2 ** 32 - 1 };
    for (let n = 0; n < Math.min(count, 1000); n++) await tunnel.frame(head);
  },
  reset: (tunnel, streamId) => tunnel.frame({ type: data, flags: FRAME_FLAG.rst, streamId, length: 0 }),
  "end-without-head": (tunnel, streamId) => tunnel.frame({ type: data, flags: FRAME_FLAG.fin, streamId, length: 0 }),
  "half-open": async (tunnel, streamId) => {
    await tunnel.data(streamId, headBytes(GOOD_HEAD));
    await tunnel.data(streamId, Buffer.from('{"choices":'));
  },
} as const satisfies Readonly<Record<string, MisbehaveOn>>;

type Kind = keyof typeof ON_CONNECTION | keyof typeof ON_STREAM | "many-tunnels";
const onConnection: Readonly<Record<string, Misbehave | undefined>> = ON_CONNECTION;
const onStream: Readonly<Record<string, MisbehaveOn | undefined>> = ON_STREAM;
const KINDS = [...Object.keys(ON_CONNECTION), ...Object.keys(ON_STREAM), "many-tunnels"] as Kind[];

async function misbehave(made: TunnelMove, tunnel: HostileTunnel): Promise<void> {
  await onConnection[made.kind]?.(tunnel, made);
  for (const streamId of tunnel.streams) await onStream[made.kind]?.(tunnel, streamId, made);
}

/** So that no window is exceeded by one frame. */
async function inPieces(tunnel: HostileTunnel, streamId: number, bytes: Buffer): Promise<void> {
  for (let at = 0; at < bytes.length; at += 65_536) await tunnel.data(streamId, bytes.subarray(at, at + 65_536));
}

const move: fc.Arbitrary<TunnelMove> = fc.record({
  kind: fc.constantFrom(...KINDS),
  count: fc.oneof(fc.constantFrom(1, 1000, 60_000, 200_000), fc.nat(100_000)),
  calls: fc.integer({ min: 0, max: 8 }),
  frames: fc.array(frame, { maxLength: 20 }),
  seed: fc.nat(2 ** 31),
});

const one = (kind: TunnelMove["kind"], count: number, calls = 4): TunnelMove => ({
  kind,
  count,
  calls,
  frames: [],
  seed: 1,
});

export const nodeTunnel: Attack<TunnelMove> = {
  name: "node-tunnel",
  move,
  known: {
    heads: [
      one("giant-head", 1_000_000),
      one("nested-head", 1_000_000),
      one("many-headers", 50_000),
      one("slow-head", 200),
    ],
    "floods of frames": [
      one("ping-flood", 200_000, 0),
      one("window-flood", 200_000),
      one("reset-flood", 200_000),
      one("beyond-window", 60),
    ],
    "streams and windows": [
      one("many-tunnels", 100, 0),
      one("open-flood", 100_000, 0),
      one("half-open", 1),
      one("window-overflow", 10),
    ],
  },
  perform,
};
