import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { watchLiveness } from "./liveness.ts";

const OPTIONS = { pingIntervalMs: 1000, pingTimeoutMs: 3000 } as const;

class Session {
  isClosed = false;
  received = 0;
  isCongested = false;
  drains = 0;
  reason: Error | undefined;
  asked: (() => void)[] = [];

  ping(onAnswer: () => void): void {
    this.asked.push(onAnswer);
  }

  destroy(reason: Error): void {
    this.isClosed = true;
    this.reason = reason;
  }
}

describe("the liveness check of a tunnel", () => {
  let session: Session;
  let end: () => void;
  beforeEach(() => {
    vi.useFakeTimers();
    session = new Session();
    end = watchLiveness(session, OPTIONS);
  });
  afterEach(() => {
    end();
    vi.useRealTimers();
  });

  test("disconnects a peer that does not answer pings", () => {
    vi.advanceTimersByTime(4001);
    expect(session.reason?.message).toBe("the ping was not answered in 3000 ms");
  });

  test("disconnects a peer that reads nothing, even if it answers pings", () => {
    session.isCongested = true;
    const second = (): void => {
      vi.advanceTimersByTime(1000);
      for (const answer of session.asked.splice(0)) answer();
    };
    for (let count = 0; count < 59; count += 1) second();
    session.drains += 1;
    for (let count = 0; count < 60; count += 1) second();
    expect(session.isClosed).toBe(false);
    second();
    second();
    expect(session.reason?.message).toBe("nothing was read for 60000 ms");
  });

  test("pings again only after an answer", () => {
    vi.advanceTimersByTime(2500);
    expect(session.asked).toHaveLength(1);
    session.asked[0]?.();
    vi.advanceTimersByTime(1000);
    expect(session.asked).toHaveLength(2);
  });

  test("keeps a peer whose ping answer is queued behind other data", () => {
    for (let second = 0; second < 60; second++) {
      session.received += 1;
      vi.advanceTimersByTime(1000);
    }
    expect(session.reason).toBeUndefined();
    vi.advanceTimersByTime(8001);
    expect(session.isClosed).toBe(true);
  });

  test("sends no more pings once it is stopped", () => {
    end();
    vi.advanceTimersByTime(60_000);
    expect(session.asked).toEqual([]);
  });
});
