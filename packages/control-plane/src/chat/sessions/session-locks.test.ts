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

  test("allows one turn at a time in a session, in order of arrival", async () => {
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

  test("does not make other sessions wait", async () => {
    await taken("ses_1");
    await expect(taken("ses_2")).resolves.toBeTypeOf("function");
  });

  test("reports busy, and when to retry, after the maximum wait", async () => {
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

  test("reports busy immediately if the queue is full", async () => {
    await taken();
    void taken().catch(() => undefined);
    void taken().catch(() => undefined);
    await expect(taken()).rejects.toMatchObject({ code: "session_busy" });
  });

  test("gives no turn to a caller that disconnects while waiting, and does not delay the others", async () => {
    const first = await taken();
    const leaving = new AbortController();
    const left = locks.take("ses_1", leaving.signal);
    const next = taken();
    leaving.abort();
    await expect(left).resolves.toBeNull();
    first();
    await expect(next).resolves.toBeTypeOf("function");
  });

  test("does nothing for a caller that has already disconnected", async () => {
    await expect(locks.take("ses_1", AbortSignal.abort())).resolves.toBeNull();
    expect(locks.has("ses_1")).toBe(false);
  });

  test("does not give a session to two turns if it is released twice", async () => {
    const first = await taken();
    const second = taken();
    first();
    first();
    await second;
    expect(locks.has("ses_1")).toBe(true);
  });
});
