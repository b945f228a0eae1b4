import { setTimeout as sleep } from "node:timers/promises";
import { PROTOCOL_VERSIONS } from "@fairlead/protocol/daemon-link";
import * as fc from "fast-check";
import { seededRandom } from "../support/money-calls.ts";
import { ADDRESSES, type Attack, type Ground } from "./attack.ts";
import { bearer, call } from "./call.ts";
import type { StageNode } from "./facts.ts";
import { HOST_FACTS } from "./host-facts.ts";
import { LinkSocket } from "./link-socket.ts";
import { mutate } from "./replies.ts";

/** A node with a valid identity, which says what it likes on its link. */

const KINDS = [
  "events",
  "observe",
  "heartbeat",
  "hello",
  "secret",
  "worker-token",
  "subscribe",
  "unknown",
  "batch",
  "nested",
  "mutated",
  "binary",
  "silent",
  "unread",
  "ready",
] as const;

export interface LinkMove {
  readonly kind: (typeof KINDS)[number];
  /** Messages, or links of the silent kind. */
  readonly count: number;
  /** Characters of ids and other texts that the message has. */
  readonly length: number;
  /** Entries of the message's lists. */
  readonly entries: number;
  /** Changes of the node by its owner meanwhile. */
  readonly changes: number;
  readonly hello: boolean;
  readonly seed: number;
  readonly address: (typeof ADDRESSES)[number];
}

const move: fc.Arbitrary<LinkMove> = fc.record({
  kind: fc.constantFrom(...KINDS),
  count: fc.oneof(fc.constantFrom(1, 20, 300, 3000), fc.nat(3000)),
  length: fc.constantFrom(1, 64, 2048, 100_000, 900_000),
  entries: fc.constantFrom(0, 1, 100, 256),
  changes: fc.nat(2),
  hello: fc.boolean(),
  seed: fc.nat(2 ** 31),
  address: fc.constantFrom(...ADDRESSES),
});

const one = (kind: LinkMove["kind"], count: number, more: Partial<LinkMove> = {}): LinkMove => ({
  kind,
  count,
  length: 64,
  entries: 100,
  changes: 0,
  hello: true,
  seed: 1,
  address: ADDRESSES[0],
  ...more,
});

export const nodeLink: Attack<LinkMove> = {
  name: "node-link",
  move,
  known: {
    "events without end": [one("events", 1500, { length: 2048 }), one("events", 20, { length: 900_000, entries: 1 })],
    "20,000 subscriptions": [one("subscribe", 20_000, { changes: 1 })],
    "silent links": [one("silent", 200, { hello: false }), one("silent", 200, { hello: false, address: ADDRESSES[1] })],
    "reports without end": [
      one("observe", 300, { length: 2048, entries: 256 }),
      one("heartbeat", 3000),
      one("ready", 20, { length: 2048 }),
    ],
    "batches and a link that is not read": [
      one("batch", 10, { entries: 10_000 }),
      one("unread", 1, { changes: 20 }),
      one("nested", 5, { length: 900_000 }),
    ],
  },
  perform,
};

const HOLD_MS = 2500;
/** So that a change finds what the link has asked for before. */
const HANDLED_MS = 1000;
const CALL_MS = 8000;
/** A message of the link may have up to a megabyte; a longer one ends the link at once. */
const MOST_BYTES = 1_000_000;
/** What one move sends at most. */
const MOST_SENT = 100_000_000;
const MESSAGE_LENGTH = 2048;

async function perform(made: LinkMove, ground: Ground): Promise<void> {
  if (made.kind === "silent") return silent(made, ground);
  if (made.kind === "ready") return ready(made, ground);
  const link = await open(made, ground);
  if (link === null) return;
  if (made.hello) {
    await link.send(link.request("mutation", "hello", helloOf(64)));
    await link.heard();
  }
  if (made.kind === "unread") {
    await link.send(link.request("subscription", "desiredState", {}));
    link.pause();
  } else await flood(link, made, ground);
  if (made.changes > 0) await sleep(HANDLED_MS);
  for (let change = 0; change < made.changes; change++) await changeNode(made, ground, change);
  await sleep(200);
  link.destroy();
}

async function flood(link: LinkSocket, made: LinkMove, ground: Ground): Promise<void> {
  const random = seededRandom(made.seed);
  let bytes = 0;
  for (let n = 0; n < made.count && link.isOpen && bytes < MOST_SENT; n++) {
    const message = messageOf(link, made, { n, random });
    const text = typeof message === "string" || Buffer.isBuffer(message) ? message : JSON.stringify(message);
    bytes += text.length;
    ground.sent += 1;
    await link.send(text);
  }
}

function nodeOf(seed: number, { facts }: Ground): StageNode {
  const { nodes } = facts.hostile.link;
  const node = nodes[seed % nodes.length];
  if (node === undefined) throw new Error("there is no node to attack with");
  return node;
}

async function open({ address, seed }: LinkMove, ground: Ground): Promise<LinkSocket | null> {
  ground.sent += 1;
  const link = await LinkSocket.open(nodeOf(seed, ground), address);
  if (link !== null) ground.open.add(link);
  return link;
}

/** Links that say nothing, and answer pings. */
async function silent(made: LinkMove, ground: Ground): Promise<void> {
  const links = await Promise.all(Array.from({ length: Math.min(made.count, 500) }, () => open(made, ground)));
  await sleep(HOLD_MS);
  for (const link of links) link?.destroy();
}

async function ready({ count, length, entries, seed }: LinkMove, ground: Ground): Promise<void> {
  const node = nodeOf(seed, ground);
  const workloadReports = reportsOf(node.id, { length, entries: Math.min(entries, 256) });
  const body = { id: node.id, workloadReports, operatingSystem: "x".repeat(256), workerImageDigest: "x".repeat(256) };
  const text = JSON.stringify(body);
  const headers = bearer(node.identityToken);
  for (let n = 0; n < Math.min(count, 40); n++) {
    ground.sent += 1;
    const path = `/v1/nodes/${node.id}/ready`;
    await call({ url: ground.facts.platformUrl, path, method: "POST", headers, body: text, deadlineMs: CALL_MS });
  }
}

/** The owner is the attacker's accomplice. */
async function changeNode({ seed }: LinkMove, ground: Ground, round: number): Promise<void> {
  const { token } = ground.facts.hostile.link;
  const value = `${seed}-${round}-${ground.sent}`;
  const change = { node: { engineConfig: { preset: "fairlead-demo", env: { ROUND: value } } } };
  ground.sent += 1;
  await call({
    url: ground.facts.platformUrl,
    path: `/v1/nodes/${nodeOf(seed, ground).id}`,
    method: "PATCH",
    headers: bearer(token),
    body: JSON.stringify(change),
    deadlineMs: CALL_MS,
  });
}

interface Turn {
  readonly n: number;
  readonly random: () => number;
}

function messageOf(link: LinkSocket, made: LinkMove, { n, random }: Turn): object | string | Buffer {
  const { length, entries } = made;
  const text = "x".repeat(length);
  switch (made.kind) {
    case "events":
      return link.request("mutation", "events", eventsOf(made, n));
    case "observe":
      return link.request("mutation", "observe", observationOf(made, n));
    case "heartbeat":
      return link.request("mutation", "heartbeat", { epoch: text, generation: n });
    case "hello":
      return link.request("mutation", "hello", helloOf(length));
    case "secret":
      return link.request("query", "secret", { name: `${text}${n}`.slice(-length) });
    case "worker-token":
      return link.request("query", "workerToken", { workloadId: `${text}${n}` });
    case "subscribe":
      return link.request("subscription", "desiredState", { lastEventId: null });
    case "unknown":
      return link.request("query", text, text);
    case "batch": {
      const each = (): object => link.request("query", "workerToken", { workloadId: "x" });
      return Array.from({ length: Math.min(entries, 10_000) }, each);
    }
    case "nested":
      return "[".repeat(length);
    case "mutated":
      return mutate(JSON.stringify(link.request("mutation", "events", eventsOf(made, n))), random).toString("latin1");
    case "binary":
      return Buffer.alloc(length, 256 * random());
    case "silent":
    case "unread":
    case "ready":
      return {};
  }
}

function helloOf(length: number): object {
  const text = "x".repeat(length);
  const host = { ...HOST_FACTS, kernel: text, hostName: text };
  return { protocolVersions: [...PROTOCOL_VERSIONS], daemonVersion: text, bootId: text, host };
}

function eventsOf({ length, entries, seed }: LinkMove, n: number): object[] {
  const message = "x".repeat(Math.min(length, MESSAGE_LENGTH));
  const count = Math.min(100, entries, Math.ceil(MOST_BYTES / (length + message.length)));
  return Array.from({ length: count }, (_, each) => ({
    id: `${"i".repeat(Math.max(0, length - 30))}${seed}-${n}-${each}`,
    at: "2026-01-01T00:00:00Z",
    kind: "step_failed",
    workloadId: null,
    message,
  }));
}

function observationOf({ length, entries }: LinkMove, n: number): object {
  const count = Math.min(entries, Math.max(1, Math.floor(MOST_BYTES / (3 * length + 500))));
  return { epoch: "x", generation: n, workloadReports: reportsOf(`w${n}`, { length, entries: count }) };
}

function reportsOf(id: string, { length, entries }: Pick<LinkMove, "length" | "entries">): object[] {
  const text = "x".repeat(Math.min(length, Math.floor(MOST_BYTES / (3 * Math.max(1, entries)))));
  return Array.from({ length: entries }, (_, each) => ({
    workloadId: `${id}-${each}`,
    workloadType: "WORKLOAD_TYPE_ENGINE",
    ready: false,
    state: "failed",
    version: "1",
    image: text,
    imageDigest: "",
    generation: 1,
    models: [text],
    startedAt: null,
    restartCount: each,
    lastExit: null,
    message: text,
  }));
}
