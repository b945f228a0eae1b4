import { TestClock } from "@fairlead/protocol/testing/test-clock";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { FactCache } from "./fact-cache.ts";

interface Fact {
  readonly version: number;
}

describe("remembered facts", () => {
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

  test("are there without waiting for most of a second from the moment at which they were asked for", async () => {
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

  test("are read once for all who ask at once, each id for itself", async () => {
    const found = [cache.find("a"), cache.find("a"), cache.find("a")];
    expect(asked()).toBe(1);
    answer({ version: 1 });
    for (const fact of found) expect(await fact).toEqual({ version: 1 });
    void cache.find("b");
    expect(asked()).toBe(2);
  });

  test("that there is no such thing is never remembered", async () => {
    const found = cache.find("a");
    answer(null);
    expect(await found).toBeNull();
    await known(1);
  });

  test("what is gone is not remembered any more", async () => {
    await known(1);
    clock.advance(1000);
    const found = cache.find("a");
    answer(null);
    expect(await found).toBeNull();
    void cache.find("a");
    expect(asked()).toBe(3);
  });

  test("what was forgotten is read anew", async () => {
    await known(1);
    cache.forget("a");
    await known(2);
    cache.forgetAll(({ version }) => version === 2);
    await known(3);
    cache.forgetAll(({ version }) => version === 2);
    expect(cache.find("a")).toEqual({ version: 3 });
  });

  test.each([
    ["one", (): void => cache.forget("a")],
    ["some", (): void => cache.forgetAll(() => true)],
  ])(
    "an answer on its way while %s is forgotten is told to nobody who asks later, and not remembered",
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

  test("without grace a store's error is the answer, and is not remembered", async () => {
    await known(1);
    clock.advance(1000);
    const found = cache.find("a");
    answers.at(-1)?.reject(new Error("away"));
    await expect(found).rejects.toThrow("away");
    await known(2);
  });

  test("with grace they live on while the store fails, and it is asked about once a second", async () => {
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

  test("with grace nobody waits long for a store that does not answer", async () => {
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

  test("the grace ends, counted from the last good reading", async () => {
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

  test("what is forgotten while the store is asked does not live on", async () => {
    cache = cacheWith({ graceMs: 10_000 });
    await known(1);
    clock.advance(1000);
    const found = cache.find("a");
    cache.forget("a");
    answers.at(-1)?.reject(new Error("away"));
    await expect(found).rejects.toThrow("away");
  });

  test("what nothing is known of is unavailable when the store does not answer for long, and is asked for anew", async () => {
    vi.useFakeTimers();
    const found = cache.find("a");
    const refused = expect(found).rejects.toMatchObject({ code: "unavailable", retryAfterSeconds: 1 });
    await vi.advanceTimersByTimeAsync(5000);
    await refused;
    await known(1);
  });

  test("as many are remembered as were allowed, the least used forgotten first", async () => {
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
