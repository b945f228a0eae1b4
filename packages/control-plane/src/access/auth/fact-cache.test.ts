import { TestClock } from "@fairlead/protocol/testing/test-clock";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { FactCache } from "./fact-cache.ts";

interface Fact {
  readonly version: number;
}

describe("cached facts", () => {
  let clock: TestClock;
  let answers: PromiseWithResolvers<Fact | null>[];
  let cache: FactCache<Fact>;

  const asked = (): number => answers.length;
  const answer = (fact: Fact | null): void => answers.at(-1)?.resolve(fact);
  const cacheWith = (options: { graceMs?: number; max?: number } = {}): FactCache<Fact> =>
    new FactCache({
      read: () => {
        const answering = Promise.withResolvers<Fact | null>();
        answers.push(answering);
        return answering.promise;
      },
      clock,
      max: 10,
      ...options,
    });
  const known = async (version: number): Promise<void> => {
    const found = cache.find("a");
    answer({ version });
    expect(await found).toEqual({ version });
  };

  beforeEach(() => {
    clock = new TestClock();
    answers = [];
    cache = cacheWith();
  });
  afterEach(() => {
    vi.useRealTimers();
    // Nobody waits for them any more.
    for (const { resolve } of answers) resolve(null);
  });

  test("are returned synchronously for most of a second after their read began", async () => {
    const found = cache.find("a");
    clock.advance(400);
    answer({ version: 1 });
    await found;
    clock.advance(499);
    expect(cache.find("a")).toEqual({ version: 1 });
    clock.advance(1);
    expect(cache.find("a")).toBeInstanceOf(Promise);
    expect(asked()).toBe(2);
  });

  test("are read once for all simultaneous callers, each ID separately", async () => {
    const found = [cache.find("a"), cache.find("a"), cache.find("a")];
    expect(asked()).toBe(1);
    answer({ version: 1 });
    for (const fact of found) expect(await fact).toEqual({ version: 1 });
    void cache.find("b");
    expect(asked()).toBe(2);
  });

  test("are never negative: a missing entry is not cached", async () => {
    const found = cache.find("a");
    answer(null);
    expect(await found).toBeNull();
    await known(1);
  });

  test("are dropped when the store no longer has them", async () => {
    await known(1);
    clock.advance(1000);
    const found = cache.find("a");
    answer(null);
    expect(await found).toBeNull();
    void cache.find("a");
    expect(asked()).toBe(3);
  });

  test("are read again after they are forgotten", async () => {
    await known(1);
    cache.forget("a");
    await known(2);
    cache.forgetAll(({ version }) => version === 2);
    await known(3);
    cache.forgetAll(({ version }) => version === 2);
    expect(cache.find("a")).toEqual({ version: 3 });
  });

  test.each([
    ["an entry", (): void => cache.forget("a")],
    ["a group of entries", (): void => cache.forgetAll(() => true)],
  ])(
    "do not come from a read that was in progress while %s was forgotten, except for its own caller",
    async (_, forget) => {
      const before = cache.find("a");
      const [old] = answers;
      forget();
      const after = cache.find("a");
      expect(asked()).toBe(2);
      answer({ version: 2 });
      expect(await after).toEqual({ version: 2 });
      old?.resolve({ version: 1 });
      expect(await before).toEqual({ version: 1 });
      expect(cache.find("a")).toEqual({ version: 2 });
    },
  );

  test("without a grace period are neither returned nor cached when the store fails", async () => {
    await known(1);
    clock.advance(1000);
    const found = cache.find("a");
    answers.at(-1)?.reject(new Error("away"));
    await expect(found).rejects.toThrow("away");
    await known(2);
  });

  test("with a grace period survive while the store fails, which is retried about once a second", async () => {
    cache = cacheWith({ graceMs: 10_000 });
    await known(1);
    clock.advance(1000);
    const found = cache.find("a");
    answers.at(-1)?.reject(new Error("away"));
    expect(await found).toEqual({ version: 1 });
    clock.advance(899);
    expect(cache.find("a")).toEqual({ version: 1 });
    expect(asked()).toBe(2);
    clock.advance(1);
    await known(2);
  });

  test("with a grace period are returned without a long wait when the store does not respond", async () => {
    vi.useFakeTimers();
    cache = cacheWith({ graceMs: 10_000 });
    await known(1);
    clock.advance(1000);
    const found = cache.find("a");
    await vi.advanceTimersByTimeAsync(250);
    expect(await found).toEqual({ version: 1 });
    // Its answer counts when it comes after all.
    answer({ version: 2 });
    await vi.advanceTimersByTimeAsync(0);
    expect(await cache.find("a")).toEqual({ version: 2 });
  });

  test("are dropped at the end of the grace period, counted from the last successful read", async () => {
    cache = cacheWith({ graceMs: 10_000 });
    await known(1);
    for (const seconds of [5, 4]) {
      clock.advance(seconds * 1000);
      const found = cache.find("a");
      answers.at(-1)?.reject(new Error("away"));
      expect(await found).toEqual({ version: 1 });
    }
    clock.advance(1000);
    const found = cache.find("a");
    answers.at(-1)?.reject(new Error("away"));
    await expect(found).rejects.toThrow("away");
  });

  test("that are forgotten during a store read do not survive in the grace period", async () => {
    cache = cacheWith({ graceMs: 10_000 });
    await known(1);
    clock.advance(1000);
    const found = cache.find("a");
    cache.forget("a");
    answers.at(-1)?.reject(new Error("away"));
    await expect(found).rejects.toThrow("away");
  });

  test("that were never read are unavailable while the store does not respond, and are then read again", async () => {
    vi.useFakeTimers();
    const found = cache.find("a");
    const refused = expect(found).rejects.toMatchObject({ code: "unavailable", retryAfterSeconds: 1 });
    await vi.advanceTimersByTimeAsync(5000);
    await refused;
    await known(1);
  });

  test("are limited in number, and the least recently used are dropped first", async () => {
    cache = cacheWith({ max: 2 });
    for (const id of ["a", "b", "c"]) {
      const found = cache.find(id);
      answer({ version: 1 });
      await found;
    }
    expect(cache.find("c")).toEqual({ version: 1 });
    expect(cache.find("a")).toBeInstanceOf(Promise);
  });
});
