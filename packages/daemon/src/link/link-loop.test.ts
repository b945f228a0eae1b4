import type { DesiredState } from "@fairlead/protocol/workload";
import { afterEach, expect, test } from "vitest";
import { aDesiredState } from "../testing/builders.ts";
import { FakeControlPlane } from "../testing/fake-control-plane.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { silentLog } from "../testing/silent-log.ts";
import { aHello } from "./control-link.contract.ts";
import { type LinkLoop, startLink } from "./link-loop.ts";
import { ServerClock } from "./server-clock.ts";

let loop: LinkLoop | null = null;
afterEach(() => loop?.close());

function start(controlPlane: FakeControlPlane) {
  const time = new FakeTime();
  const calls: string[] = [];
  /** The version of each link and of each full report. */
  const states: DesiredState[] = [];
  const started = startLink({
    control: controlPlane,
    serverClock: new ServerClock(time),
    timers: time,
    random: () => 0.5,
    log: silentLog,
    hello: async () => {
      calls.push("hello");
      return aHello;
    },
    held: () => ({ epoch: "epo_1", generation: 3 }),
    onState: (state) => states.push(state),
    onLive: () => calls.push(`live after ${controlPlane.subscriptions} subscriptions`),
    onDown: () => calls.push("down"),
  });
  loop = started;
  return { time, calls, states, loop: started };
}

test("every connect says hello, subscribes, then reports", async () => {
  const controlPlane = new FakeControlPlane();
  controlPlane.push(aDesiredState());
  const { time, calls, states, loop } = start(controlPlane);
  await time.advance(0);
  expect(loop.state()).toEqual({ name: "live" });
  controlPlane.drop();
  await time.advance(10_000);
  expect(calls).toEqual(["hello", "live after 1 subscriptions", "down", "hello", "live after 2 subscriptions"]);
  expect(states).toHaveLength(2);
});

test("heartbeats name the held state, at the interval set by the server", async () => {
  const controlPlane = new FakeControlPlane();
  const { time } = start(controlPlane);
  await time.advance(5000);
  expect(controlPlane.received.heartbeats).toEqual([{ epoch: "epo_1", generation: 3 }]);
  controlPlane.heartbeatSeconds = 60;
  await time.advance(70_000);
  expect(controlPlane.received.heartbeats).toHaveLength(3);
});

test("an unreachable control plane is retried forever", async () => {
  const controlPlane = new FakeControlPlane();
  controlPlane.down = true;
  const { time, loop } = start(controlPlane);
  await time.advance(24 * 3_600_000);
  expect(controlPlane.attempts).toBeGreaterThan(1000);
  controlPlane.down = false;
  await time.advance(30_000);
  expect(loop.state().name).toBe("live");
});

test("retry-after of a refusal is obeyed", async () => {
  const controlPlane = new FakeControlPlane();
  controlPlane.refuseNext(503, 120);
  const { time, loop } = start(controlPlane);
  await time.advance(119_000);
  expect(controlPlane.attempts).toBe(1);
  await time.advance(10_000);
  expect(loop.state().name).toBe("live");
});

test("a server that lost track of a node and hears from it again receives everything on the same link", async () => {
  const controlPlane = new FakeControlPlane();
  const { time, calls } = start(controlPlane);
  await time.advance(1000);
  controlPlane.wantsReport = true;
  await time.advance(5000);
  expect(calls).toEqual(["hello", "live after 1 subscriptions", "live after 1 subscriptions"]);
  await time.advance(60_000);
  expect(calls).toHaveLength(3);
});

test("a failed heartbeat reopens the link", async () => {
  const controlPlane = new FakeControlPlane();
  const { time } = start(controlPlane);
  await time.advance(0);
  controlPlane.failNextCall();
  await time.advance(20_000);
  expect(controlPlane.connections).toBe(2);
});

test("a daemon whose link was taken over leaves it to the other daemon for a while, and then reconnects", async () => {
  const controlPlane = new FakeControlPlane();
  const { time, loop } = start(controlPlane);
  await time.advance(0);
  controlPlane.takeOver();
  await time.advance(10_000);
  expect(controlPlane.attempts).toBe(1);
  await time.advance(7000);
  expect(loop.state().name).toBe("live");
});

test("a daemon whose link was closed for flooding reconnects after a minute, not immediately", async () => {
  const controlPlane = new FakeControlPlane();
  const { time, loop } = start(controlPlane);
  await time.advance(0);
  controlPlane.closeFlooded();
  await time.advance(60_000);
  expect(controlPlane.attempts).toBe(1);
  await time.advance(60_000);
  expect(loop.state().name).toBe("live");
});

test("the whole state is requested again even when nothing seems lost", async () => {
  const controlPlane = new FakeControlPlane();
  const { time } = start(controlPlane);
  await time.advance(31 * 60_000);
  expect(controlPlane.connections).toBe(1);
  expect(controlPlane.subscriptions).toBe(4);
});

test("a server with another protocol version is not considered live", async () => {
  const controlPlane = new FakeControlPlane();
  controlPlane.protocolVersion = 99;
  const { time, loop } = start(controlPlane);
  await time.advance(0);
  expect(loop.state().name).toBe("backing-off");
});

test("a goodbye is sent once, only over an open link, and delays nothing for long", async () => {
  const controlPlane = new FakeControlPlane();
  const { time, loop } = start(controlPlane);
  await time.advance(0);
  await loop.goodbye();
  expect(controlPlane.received.goodbyes).toHaveLength(1);
  // Older control planes do not support it.
  controlPlane.failNextCall();
  await expect(loop.goodbye()).resolves.toBeUndefined();
  controlPlane.goodbyeGate = new Promise(() => undefined);
  let isOver = false;
  const hanging = loop.goodbye().then(() => (isOver = true));
  await time.advance(1900);
  expect(isOver).toBe(false);
  await time.advance(200);
  await hanging;
  controlPlane.down = true;
  controlPlane.drop();
  await time.advance(0);
  await expect(loop.goodbye()).resolves.toBeUndefined();
  expect(controlPlane.received.goodbyes).toHaveLength(2);
});

test("closing ends the loop in any state", async () => {
  const controlPlane = new FakeControlPlane();
  controlPlane.down = true;
  const waiting = start(controlPlane);
  await waiting.time.advance(0);
  await waiting.loop.close();
  const live = start(new FakeControlPlane());
  await live.time.advance(0);
  await live.loop.close();
  expect(live.loop.state()).toEqual({ name: "closed" });
});
