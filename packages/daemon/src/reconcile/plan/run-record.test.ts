import { expect, test } from "vitest";
import { crashDelay, NO_RUNS, pardoned } from "./run-record.ts";

test("crash loops back off 10 s × 2ⁿ up to 5 min, and the first failure is retried immediately", () => {
  expect([1, 2, 3, 4, 5, 6, 7, 8, 100].map((failures) => crashDelay(failures) / 1000)).toEqual([
    0, 10, 20, 40, 80, 160, 300, 300, 300,
  ]);
});

test("after a container engine outage, workloads that had worked restart immediately, and those given up stay so", () => {
  const failed = { ...NO_RUNS, failures: 3, notBefore: 1_000_000 };
  const records = pardoned(new Map(Object.entries({ worked: { ...failed, everReady: true }, never: failed })));
  expect(records.get("worked")).toMatchObject({ failures: 0, notBefore: 0, everReady: true });
  expect(records.get("never")).toEqual(failed);
});
