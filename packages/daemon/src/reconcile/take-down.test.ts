import { expect, test } from "vitest";
import { RuntimeError } from "../runtime/container-runtime.ts";
import { aDesiredState, aSpec, OWNER } from "../testing/builders.ts";
import { Machine } from "../testing/loop-harness.ts";
import { takeDown } from "./take-down.ts";

interface Running {
  readonly machine: Machine;
  readonly ended: () => Promise<boolean>;
  readonly stop: AbortController;
  /** Networks that still existed when their rules were removed. */
  readonly rulesGone: number[];
}

async function running(): Promise<Running> {
  const machine = new Machine();
  const rulesGone: number[] = [];
  const networks = { remove: async () => void rulesGone.push((await machine.runtime.networks(OWNER)).length) };
  machine.runtime.addImage(aSpec().image);
  machine.runtime.plant({ name: "postgres", state: "running" });
  const desired = aDesiredState();
  machine.startDaemon(desired);
  await machine.time.advance(10_000);
  const stop = new AbortController();
  const ended = () =>
    takeDown({
      desired,
      accept: (next) => machine.loop.desiredChanged(next),
      snapshot: () => machine.snapshot,
      networks,
      timers: machine.time,
      signal: stop.signal,
    });
  return { machine, ended, stop, rulesGone };
}

test("a deleted node's engine and network are removed, then their rules, and nothing else (gpustack#2935)", async () => {
  const { machine, ended, rulesGone } = await running();
  expect(machine.running()).toHaveLength(2);
  const done = ended();
  await machine.time.advance(60_000);
  expect(await done).toBe(true);
  expect(machine.runtime.all().map(({ name }) => name)).toEqual(["postgres"]);
  expect(machine.running()).toEqual(["postgres"]);
  expect(rulesGone).toEqual([0]);
});

test("the removal continues after a temporary container engine outage", async () => {
  const { machine, ended } = await running();
  machine.runtime.available = false;
  const done = ended();
  await machine.time.advance(120_000);
  machine.runtime.available = true;
  machine.runtime.failNext("stop", new RuntimeError("unavailable", "a fault"));
  await machine.time.advance(120_000);
  expect(await done).toBe(true);
  expect(await machine.runtime.list(OWNER)).toEqual([]);
});

test("the removal gives up eventually, and when it is told to", async () => {
  const { machine, ended, stop } = await running();
  machine.runtime.available = false;
  const first = ended();
  await machine.time.advance(11 * 60_000);
  expect(await first).toBe(false);
  const second = ended();
  stop.abort();
  expect(await second).toBe(false);
});
