import { expect, test } from "vitest";
import { crashDelay } from "./run-record.ts";

test("crash loops back off 10 s × 2ⁿ up to 5 min, and the first failure is answered at once", () => {
  expect([1, 2, 3, 4, 5, 6, 7, 8, 100].map((failures) => crashDelay(failures) / 1000)).toEqual([
    0, 10, 20, 40, 80, 160, 300, 300, 300,
  ]);
});
