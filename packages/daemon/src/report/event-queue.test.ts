import { encodeId } from "@fairlead/protocol/ids";
import { beforeEach, expect, test } from "vitest";
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

test("what happened while the link was down is told when it is up, in order", async () => {
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

test("an event has the time when it happened, by the platform's clock, however late it is told and wrong this one is", async () => {
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

test("events that were not taken are sent again under the same ids", async () => {
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

test("a full queue gives up the oldest, and says so", async () => {
  for (let i = 0; i < 1500; i++) queue.push("a", null, `event ${i}`);
  queue.attach(await connect());
  await time.advance(1000);
  expect(messages()[0]).toBe("event 500");
  expect(messages()).toContain("500 older events did not fit and are lost");
  expect(messages()).toHaveLength(1001);
});

test("a long message is cut to what the control plane takes", async () => {
  queue.push("a", null, "x".repeat(10_000));
  queue.attach(await connect());
  await time.advance(0);
  expect(messages()[0]).toHaveLength(2048);
});
