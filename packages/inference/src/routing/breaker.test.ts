import { describe, expect, test } from "vitest";
import { Breaker, FAILURES_TO_OPEN, MAX_OPEN_MS, OPEN_MS } from "./breaker.ts";

function opened(now = 0) {
  const breaker = new Breaker();
  for (let n = 0; n < FAILURES_TO_OPEN; n++) breaker.failed(now, false);
  return breaker;
}

describe("a breaker", () => {
  test("opens on consecutive failures, but not if a success comes between them", () => {
    const breaker = new Breaker();
    for (let n = 1; n < FAILURES_TO_OPEN; n++) breaker.failed(0, false);
    breaker.succeeded();
    for (let n = 1; n < FAILURES_TO_OPEN; n++) breaker.failed(0, false);
    expect(breaker.state(0)).toBe("closed");
    breaker.failed(0, false);
    expect(breaker.state(0)).toBe("open");
    expect(breaker.msUntilAllowed(1000)).toBe(OPEN_MS - 1000);
  });

  test("lets one call at a time probe, and closes when it succeeds", () => {
    const breaker = opened();
    expect(breaker.begin(OPEN_MS - 1)).toBe(false);
    expect(breaker.state(OPEN_MS)).toBe("half_open");
    expect(breaker.msUntilAllowed(OPEN_MS)).toBe(0);
    expect(breaker.begin(OPEN_MS)).toBe(true);
    expect(breaker.msUntilAllowed(OPEN_MS)).toBeGreaterThan(0);
    expect(breaker.begin(OPEN_MS)).toBe(false);
    breaker.succeeded();
    expect(breaker.state(OPEN_MS)).toBe("closed");
    expect(breaker.msUntilAllowed(OPEN_MS)).toBe(0);
  });

  test("opens for longer each time that a probe fails, up to a limit", () => {
    const breaker = opened();
    let now = 0;
    let wait = OPEN_MS;
    for (let n = 0; n < 8; n++) {
      expect(breaker.msUntilAllowed(now)).toBe(wait);
      now += wait;
      breaker.failed(now, breaker.begin(now));
      wait = Math.min(MAX_OPEN_MS, 2 * wait);
    }
    expect(breaker.msUntilAllowed(now)).toBe(MAX_OPEN_MS);
  });

  test("ignores failures of calls that were running when it opened", () => {
    const breaker = opened();
    breaker.failed(1000, false);
    expect(breaker.msUntilAllowed(1000)).toBe(OPEN_MS - 1000);
  });

  test("lets another call probe if the first one ended without an outcome", () => {
    const breaker = opened();
    breaker.begin(OPEN_MS);
    breaker.forgetProbe();
    expect(breaker.begin(OPEN_MS)).toBe(true);
  });
});
