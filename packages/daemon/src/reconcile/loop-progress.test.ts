import { beforeEach, expect, test } from "vitest";
import { RuntimeError } from "../runtime/container-runtime.ts";
import { aDesiredState } from "../testing/builders.ts";
import { Machine } from "../testing/loop-harness.ts";

let machine: Machine;
beforeEach(() => {
  machine = new Machine();
});

const HOUR = 3_600_000;

test("a loop with nothing to do or no container engine still makes progress", async () => {
  const loop = machine.startDaemon(null);
  await machine.time.advance(HOUR);
  expect(loop.getsOn()).toBe(true);
  for (let call = 0; call < 100; call++) machine.runtime.failNext("list", new RuntimeError("unavailable", "away"));
  await machine.time.advance(HOUR);
  expect(loop.getsOn()).toBe(true);
});

test("a round that never ends makes no progress", async () => {
  const loop = machine.startDaemon(aDesiredState());
  await machine.time.advance(HOUR);
  machine.runtime.list = () => new Promise(() => undefined);
  await machine.time.advance(60_000);
  expect(loop.getsOn()).toBe(true);
  await machine.time.advance(HOUR);
  expect(loop.getsOn()).toBe(false);
});
