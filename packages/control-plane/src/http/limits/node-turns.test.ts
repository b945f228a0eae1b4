import { DomainError } from "@fairlead/protocol/errors";
import { TestClock } from "@fairlead/protocol/testing/test-clock";
import { expect, test } from "vitest";
import { NodeTurns } from "./node-turns.ts";

/** @returns null if the node may connect, else how many seconds it must wait. */
function connect(turns: NodeTurns, nodeId: string): number | null {
  try {
    turns.check(nodeId);
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    return error.retryAfterSeconds ?? Number.NaN;
  }
  turns.spend(nodeId);
  return null;
}

test("a node can connect as often as its burst, then once per interval, and is told when to retry", () => {
  const clock = new TestClock();
  const turns = new NodeTurns({ burst: 3, everyMs: 2000, clock });
  const several = (nodeId: string): (number | null)[] => Array.from({ length: 5 }, () => connect(turns, nodeId));
  expect(several("a")).toEqual([null, null, null, 2, 2]);
  expect(several("b")).toEqual([null, null, null, 2, 2]);
  clock.advance(2000);
  expect(several("a")).toEqual([null, 2, 2, 2, 2]);
  clock.advance(3_600_000);
  expect(several("a")).toEqual([null, null, null, 2, 2]);
});

test("checking the share does not use it", () => {
  const turns = new NodeTurns({ burst: 1, everyMs: 2000, clock: new TestClock() });
  for (let n = 0; n < 5; n++) turns.check("a");
  expect(connect(turns, "a")).toBeNull();
});
