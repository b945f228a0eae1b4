import { expect, test } from "vitest";
import { TokenBucket } from "./token-bucket.ts";

const takes = (bucket: TokenBucket, now: number, most = 100): number => {
  let taken = 0;
  while (taken < most && bucket.take(now)) taken += 1;
  return taken;
};

test("a full bucket allows a burst of its capacity, and then its rate", () => {
  const bucket = new TokenBucket({ capacity: 10, perSecond: 2 }, 0);
  expect(takes(bucket, 0)).toBe(10);
  expect(takes(bucket, 1000)).toBe(2);
  expect(takes(bucket, 1400)).toBe(0);
  expect(takes(bucket, 1500)).toBe(1);
  expect(takes(bucket, 1_000_000)).toBe(10);
});

test("an amount is taken in full or not at all, and the bucket says when it will be available", () => {
  const bucket = new TokenBucket({ capacity: 10, perSecond: 2 }, 0);
  expect(bucket.take(0, 8)).toBe(true);
  expect(bucket.take(0, 3)).toBe(false);
  expect(bucket.msUntil(0, 3)).toBe(500);
  expect(bucket.take(499, 3)).toBe(false);
  expect(bucket.take(500, 3)).toBe(true);
  expect(bucket.msUntil(500, 0)).toBe(0);
  expect(bucket.msUntil(500, 11)).toBe(Number.POSITIVE_INFINITY);
});
