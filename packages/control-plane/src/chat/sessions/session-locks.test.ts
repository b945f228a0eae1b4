import { beforeEach, describe, expect, test, vi } from "vitest";
import { type Release, SessionLocks } from "./session-locks.ts";

const nobodyLeaves = new AbortController().signal;

describe("SessionLocks", () => {
  let locks: SessionLocks;
  beforeEach(() => {
    locks = new SessionLocks({ waitMs: 1000, places: 2 });
  });

  const taken = async (session = "ses_1"): Promise<Release> => {
    const release = await locks.take(session, nobodyLeaves);
    if (release === null) throw new Error("not taken");
    return release;
  };

  test("lets one turn at a time into a session, in the order in which they came", async () => {
    const order: string[] = [];
    const first = await taken();
    const second = taken().then((release) => {
      order.push("second");
      release();
    });
    const third = taken().then((release) => {
      order.push("third");
      release();
    });
    await Promise.resolve();
    expect(order).toEqual([]);
    first();
    await Promise.all([second, third]);
    expect(order).toEqual(["second", "third"]);
    expect(locks.has("ses_1")).toBe(false);
  });

  test("other sessions do not wait", async () => {
    await taken("ses_1");
    await expect(taken("ses_2")).resolves.toBeTypeOf("function");
  });

  test("says busy, and when to come back, where the wait is over", async () => {
    vi.useFakeTimers();
    try {
      await taken();
      const waiting = expect(taken()).rejects.toMatchObject({ code: "session_busy", retryAfterSeconds: 2 });
      await vi.advanceTimersByTimeAsync(1000);
      await waiting;
    } finally {
      vi.useRealTimers();
    }
  });

  test("says busy at once where the line is full", async () => {
    await taken();
    void taken().catch(() => undefined);
    void taken().catch(() => undefined);
    await expect(taken()).rejects.toMatchObject({ code: "session_busy" });
  });

  test("who leaves while waiting takes no turn, and holds nobody up", async () => {
    const first = await taken();
    const leaving = new AbortController();
    const left = locks.take("ses_1", leaving.signal);
    const next = taken();
    leaving.abort();
    await expect(left).resolves.toBeNull();
    first();
    await expect(next).resolves.toBeTypeOf("function");
  });

  test("who has left before asks for nothing", async () => {
    await expect(locks.take("ses_1", AbortSignal.abort())).resolves.toBeNull();
    expect(locks.has("ses_1")).toBe(false);
  });

  test("a session that is given back twice is not given to two", async () => {
    const first = await taken();
    const second = taken();
    first();
    first();
    await second;
    expect(locks.has("ses_1")).toBe(true);
  });
});
