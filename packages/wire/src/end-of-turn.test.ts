import { expect, test } from "vitest";
import { atEndOfTurn } from "./end-of-turn.ts";

test("callbacks of a turn run in order at its end, and callbacks added then run in the next turn", async () => {
  const done: string[] = [];
  atEndOfTurn(() => {
    done.push("a");
    atEndOfTurn(() => done.push("c"));
  });
  atEndOfTurn(() => done.push("b"));
  await Promise.resolve();
  expect(done).toEqual([]);
  await new Promise(setImmediate);
  expect(done).toEqual(["a", "b"]);
  await new Promise(setImmediate);
  expect(done).toEqual(["a", "b", "c"]);
});
