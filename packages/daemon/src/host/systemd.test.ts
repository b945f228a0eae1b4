import { expect, test } from "vitest";
import { FakeTime } from "../testing/fake-time.ts";
import { Watchdog } from "./systemd.ts";

function watched(watchdogMs: number | null): { time: FakeTime; told: string[]; watchdog: Watchdog } {
  const time = new FakeTime();
  const told: string[] = [];
  const manager = { listens: true, watchdogMs };
  const watchdog = new Watchdog({ manager, notify: (assignment) => told.push(assignment), timers: time });
  watchdog.start();
  return { time, told, watchdog };
}

test("the watchdog is notified several times within its limit, until the end", async () => {
  const { time, told, watchdog } = watched(120_000);
  await time.advance(120_000);
  expect(told).toEqual(Array(5).fill("WATCHDOG=1"));
  watchdog.close();
  await time.advance(600_000);
  expect(told).toHaveLength(5);
});

test("the watchdog is not notified while there is no progress, and is notified again afterwards", async () => {
  const { time, told, watchdog } = watched(120_000);
  let getsOn = false;
  watchdog.watch(() => getsOn);
  await time.advance(600_000);
  expect(told).toHaveLength(1);
  getsOn = true;
  await time.advance(30_000);
  expect(told).toHaveLength(2);
});

test("nothing is sent when there is no watchdog", async () => {
  const { time, told } = watched(null);
  await time.advance(600_000);
  expect(told).toEqual([]);
});
