import { expect, test } from "vitest";
import { growingCache } from "./growing-cache.ts";

test("holds at most its maximum, evicts the least recently used entry first, and reports the eviction", () => {
  const gone: [string, string][] = [];
  const cache = growingCache<number>(2, { dispose: (_value, key, reason) => void gone.push([key, reason]) });
  cache.set("a", 1);
  cache.set("b", 2);
  cache.get("a");
  cache.set("c", 3);
  expect([...cache.keys()].toSorted()).toEqual(["a", "c"]);
  expect(gone).toEqual([["b", "evict"]]);
});

test("stays at its maximum size when far more entries are added", () => {
  const cache = growingCache<number>(100);
  for (let n = 0; n < 10_000; n++) cache.set(`key-${n}`, n);
  expect(cache.size).toBe(100);
  expect(cache.get("key-9999")).toBe(9999);
  expect(cache.get("key-9899")).toBeUndefined();
});

test("uses no memory for entries that it does not hold yet", () => {
  const bytes = (): number => {
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };
  const before = bytes();
  const caches = Array.from({ length: 50 }, () => growingCache<number>(100_000));
  // Made at once, the tables of each would be 2.4 MB.
  expect(bytes() - before).toBeLessThan(20 * 1024 * 1024);
  expect(caches.every(({ size }) => size === 0)).toBe(true);
});
