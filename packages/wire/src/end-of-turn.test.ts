import { expect, test } from "vitest";
import { atEndOfTurn } from "./end-of-turn.ts";

test("what is given in one turn is done at its end in order, and what is given then in the next", async () => {
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
