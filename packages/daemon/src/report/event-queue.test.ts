import { MAX_LINK_MESSAGE_BYTES, nodeEventsSchema } from "@fairlead/protocol/daemon-link";
import { encodeId } from "@fairlead/protocol/values/ids";
import { beforeEach, expect, test } from "vitest";
import { CallRejected } from "../link/control-link.ts";
import { FakeControlPlane } from "../testing/fake-control-plane.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { silentLog } from "../testing/silent-log.ts";
import { EventQueue } from "./event-queue.ts";

let time: FakeTime;
let controlPlane: FakeControlPlane;
let queue: EventQueue;
let platformTime: () => number;

beforeEach(() => {
  time = new FakeTime();
  controlPlane = new FakeControlPlane();
  let serial = 0;
  const ids = { next: <K extends "event">(kind: K) => encodeId(kind, serial++, new Uint8Array(10)) };
  platformTime = () => time.now();
  queue = new EventQueue({
    clock: time,
    platformTime: () => platformTime(),
    timers: time,
    ids: ids as never,
    random: () => 0.5,
    log: silentLog,
  });
});

const connect = () => controlPlane.connect(new AbortController().signal);
const messages = (): string[] => controlPlane.received.events.map((event) => event.message);

test("events from a time without a link are sent when it is up, in order", async () => {
  queue.push("a", null, "one");
  queue.push("b", "wkl_1", "two");
  queue.attach(await connect());
  await time.advance(0);
  queue.push("c", null, "three");
  await time.advance(0);
  expect(controlPlane.received.events).toMatchObject([
    { kind: "a", message: "one", workloadId: null, at: "2026-01-01T00:00:00.000Z" },
    { kind: "b", message: "two", workloadId: "wkl_1" },
    { kind: "c", message: "three" },
  ]);
});

test("an event has its time by the platform's clock, however late it is sent and however wrong the node's clock is", async () => {
  queue.push("a", null, "before the platform was heard");
  await time.advance(60_000);
  queue.push("b", null, "a minute later");
  time.epoch += 86_400_000;
  await time.advance(30_000);
  platformTime = () => Date.UTC(2026, 5, 1, 12, 0, 0) + time.monotonic();
  queue.attach(await connect());
  await time.advance(0);
  expect(controlPlane.received.events.map(({ at }) => at)).toEqual([
    "2026-06-01T12:00:00.000Z",
    "2026-06-01T12:01:00.000Z",
  ]);
});

test("events that were not accepted are sent again with the same IDs", async () => {
  const connection = await connect();
  const ids: string[] = [];
  const recording = {
    ...connection,
    events: (events: readonly { id: string }[]) => {
      ids.push(...events.map((event) => event.id));
      return connection.events(events as never);
    },
  };
  controlPlane.failNextCall();
  queue.attach(recording);
  queue.push("a", null, "one");
  await time.advance(0);
  expect(messages()).toEqual([]);
  await time.advance(60_000);
  expect(messages()).toEqual(["one"]);
  expect(new Set(ids).size).toBe(1);
});

test("a full queue keeps its events, and reports how many did not fit", async () => {
  for (let i = 0; i < 1500; i++) queue.push("a", `wkl_${i}`, `event ${i}`);
  queue.attach(await connect());
  await time.advance(1000);
  expect(messages().slice(0, 1000)).toEqual(Array.from({ length: 1000 }, (_, i) => `event ${i}`));
  expect(messages().slice(1000)).toEqual(["500 events were dropped because the queue was full"]);
});

test("a crash loop of a day becomes a few events, and the rest are counted", async () => {
  queue.attach(await connect());
  const crashes = (24 * 3600) / 300;
  for (let i = 0; i < crashes; i++) {
    queue.push("workload_exited", "wkl_1", "it ended: exit code 1");
    await time.advance(300_000);
  }
  await time.advance(24 * 3_600_000);
  const told = messages();
  expect(told.length).toBeLessThan(30);
  expect(new Set(told.slice(0, 10))).toEqual(new Set(["it ended: exit code 1"]));
  const counts = told.map((message) => Number(/\((\d+) times within/.exec(message)?.[1] ?? 1));
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(crashes);
});

test("a loop of thousands of events a second costs no more than a slow one, and delays no other event", async () => {
  queue.attach(await connect());
  for (let second = 0; second < 60; second++) {
    for (let i = 0; i < 2000; i++) queue.push("step_failed", "wkl_1", `no ${i}`);
    queue.push("workload_ready", `wkl_${second + 2}`, "it is ready");
    await time.advance(1000);
  }
  await time.advance(3_600_000);
  expect(messages().filter((message) => message === "it is ready")).toHaveLength(60);
  const loop = messages().filter((message) => message !== "it is ready");
  expect(loop.length).toBeLessThan(15);
  expect(loop.at(-1)).toMatch(/^no 1999 \(the last of \d+ within/);
});

test("a busy control plane is retried at the time that it asked for, however much happens meanwhile", async () => {
  const connection = await connect();
  const calls: number[] = [];
  queue.attach({
    ...connection,
    events: async (events) => {
      calls.push(time.monotonic());
      if (calls.length === 1) throw new CallRejected("busy", "too many", 40_000);
      await connection.events(events);
    },
  });
  queue.push("a", null, "one");
  for (let i = 0; i < 20; i++) {
    await time.advance(1000);
    queue.push("b", `wkl_${i}`, "more");
  }
  await time.advance(60_000);
  expect(calls[1]).toBeGreaterThanOrEqual(40_000);
  expect(messages()).toHaveLength(21);
});

test("events that are permanently rejected do not block later ones", async () => {
  const connection = await connect();
  queue.attach({
    ...connection,
    events: async (events) => {
      if (events.some(({ kind }) => kind === "bad")) throw new CallRejected("invalid", "no such form");
      await connection.events(events);
    },
  });
  queue.push("bad", null, "one");
  await time.advance(0);
  queue.push("good", null, "two");
  await time.advance(0);
  expect(messages()).toEqual(["two", "1 events were dropped because the queue was full"]);
});

test("one call is smaller than a message of the link, whatever the events contain", async () => {
  const sizes: number[] = [];
  const connection = await connect();
  for (let i = 0; i < 300; i++) queue.push("a", `wkl_${i}`, "\u0001".repeat(5000));
  queue.attach({
    ...connection,
    events: (events) => {
      nodeEventsSchema.parse(events);
      sizes.push(Buffer.byteLength(JSON.stringify(events)));
      return connection.events(events);
    },
  });
  await time.advance(1000);
  expect(messages()).toHaveLength(300);
  expect(Math.max(...sizes)).toBeLessThan(MAX_LINK_MESSAGE_BYTES / 2);
});

test("a long message is cut to the length that the control plane accepts", async () => {
  queue.push("a", null, "x".repeat(10_000));
  queue.attach(await connect());
  await time.advance(0);
  expect(messages()[0]).toHaveLength(2048);
});
