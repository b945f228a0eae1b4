import { expect, test } from "vitest";
import { CallSlots } from "./call-slots.ts";

test("as many calls run as there are slots, and the others follow in order, even after failures", async () => {
  const slots = new CallSlots(2);
  const begun: number[] = [];
  const ends = Array.from({ length: 5 }, () => Promise.withResolvers<number>());
  const calls = ends.map(({ promise }, n) =>
    slots.run(() => {
      begun.push(n);
      return promise;
    }),
  );
  await Promise.resolve();
  expect(begun).toEqual([0, 1]);
  ends[1]?.reject(new Error("no"));
  await expect(calls[1]).rejects.toThrow("no");
  expect(begun).toEqual([0, 1, 2]);
  for (const [n, { resolve }] of ends.entries()) resolve(n);
  expect((await Promise.allSettled(calls)).map(({ status }) => status)).toEqual([
    "fulfilled",
    "rejected",
    "fulfilled",
    "fulfilled",
    "fulfilled",
  ]);
  expect(begun).toEqual([0, 1, 2, 3, 4]);
});
