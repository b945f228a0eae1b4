import { DomainError } from "@fairlead/protocol/errors";
import { TestClock } from "@fairlead/protocol/testing/test-clock";
import { expect, test } from "vitest";
import { UpgradeAdmission } from "./upgrade-admission.ts";

/** @returns null for whoever is let in, else the seconds that they were told. */
function ask(admission: UpgradeAdmission): number | null {
  try {
    admission.admit();
    return null;
  } catch (error) {
    if (!(error instanceof DomainError) || error.code !== "overloaded") throw error;
    return error.retryAfterSeconds ?? Number.NaN;
  }
}

test("admits its number of upgrades per second, and tells the others when the earlier ones will be done", () => {
  const admission = new UpgradeAdmission(2, new TestClock());
  expect(Array.from({ length: 8 }, () => ask(admission))).toEqual([null, null, 1, 1, 2, 2, 3, 3]);
  expect(admission.refused).toBe(6);
});

test("admits more as time passes, but never more at once than in one second", () => {
  const clock = new TestClock();
  const admission = new UpgradeAdmission(2, clock);
  for (let n = 0; n < 5; n++) ask(admission);
  clock.advance(500);
  expect([ask(admission), ask(admission)]).toEqual([null, 2]);
  clock.advance(3_600_000);
  expect(Array.from({ length: 3 }, () => ask(admission))).toEqual([null, null, 1]);
});

test("daemons that all reconnect and follow their retry times are admitted at about the configured rate, in a few tries", () => {
  const clock = new TestClock();
  const admission = new UpgradeAdmission(100, clock);
  let waiting = Array.from({ length: 5000 }, (_, n) => ({ at: clock.now(), tries: 0, n }));
  const tries: number[] = [];
  const start = clock.now();
  while (waiting.length > 0 && clock.now() - start < 120_000) {
    waiting = waiting.flatMap((daemon) => {
      if (daemon.at > clock.now()) return [daemon];
      const told = ask(admission);
      if (told === null) {
        tries.push(daemon.tries + 1);
        return [];
      }
      // Spread as daemons spread it, without chance.
      return [{ ...daemon, at: clock.now() + told * 1000 + ((daemon.n * 7919) % 1000), tries: daemon.tries + 1 }];
    });
    clock.advance(100);
  }
  expect(waiting).toEqual([]);
  expect(clock.now() - start).toBeLessThan(75_000);
  expect(tries.reduce((sum, n) => sum + n, 0) / tries.length).toBeLessThan(4);
});

test("no client is told to wait longer than 30 seconds, however many there are", () => {
  const admission = new UpgradeAdmission(1, new TestClock());
  const told = Array.from({ length: 100 }, () => ask(admission) ?? 0);
  expect(Math.max(...told)).toBe(30);
});

test("admits no one while earlier daemons wait for a first response, or a slow server would lose them again", () => {
  const clock = new TestClock();
  let behind = true;
  const admission = new UpgradeAdmission(2, clock, () => behind);
  expect([ask(admission), ask(admission), ask(admission)]).toEqual([1, 1, 2]);
  behind = false;
  expect(ask(admission)).toBeNull();
});
