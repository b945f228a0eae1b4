import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { MinuteWindow } from "./minute-window.ts";

describe("a one-minute window", () => {
  test("counts what was added within the last minute, and nothing older", () => {
    const window = new MinuteWindow();
    window.add(2, 500);
    window.add(3, 30_000);
    expect(window.count(60_000)).toBe(5);
    expect(window.count(61_000)).toBe(3);
    expect(window.count(90_999)).toBe(3);
    expect(window.count(91_000)).toBe(0);
  });

  test("returns when a given amount becomes free", () => {
    const window = new MinuteWindow();
    window.add(2, 500);
    window.add(3, 30_000);
    expect(window.msUntil(5, 40_000)).toBe(0);
    expect(window.msUntil(4, 40_000)).toBe(21_000);
    expect(window.msUntil(3, 40_000)).toBe(21_000);
    expect(window.msUntil(2, 40_000)).toBe(51_000);
    expect(window.msUntil(0, 40_000)).toBe(51_000);
  });

  test("takes back what was counted too much, and nothing that is no longer in the window", () => {
    const window = new MinuteWindow();
    const step = window.add(10, 0);
    window.takeBack(4, step, 1000);
    expect(window.count(1000)).toBe(6);
    window.takeBack(100, step, 2000);
    expect(window.count(2000)).toBe(0);
    window.add(5, 61_000);
    window.takeBack(5, step, 61_000);
    expect(window.count(61_000)).toBe(5);
  });

  test("never counts less than the last minute contains, and drops entries at most a second late", () => {
    const steps = fc.array(fc.record({ pass: fc.nat({ max: 70_000 }), amount: fc.nat({ max: 9 }) }), { maxLength: 60 });
    fc.assert(
      fc.property(steps, (events) => {
        const window = new MinuteWindow();
        const came: { at: number; amount: number }[] = [];
        let now = 0;
        for (const { pass, amount } of events) {
          now += pass;
          window.add(amount, now);
          came.push({ at: now, amount });
          const within = (ms: number): number =>
            came.filter(({ at }) => at > now - ms).reduce((sum, { amount: part }) => sum + part, 0);
          expect(window.count(now)).toBeGreaterThanOrEqual(within(60_000));
          expect(window.count(now)).toBeLessThanOrEqual(within(61_000));
        }
      }),
    );
  });

  test("has room at the time it announced", () => {
    const steps = fc.array(fc.tuple(fc.nat({ max: 20_000 }), fc.nat({ max: 9 })), { minLength: 1, maxLength: 30 });
    fc.assert(
      fc.property(steps, fc.nat({ max: 40 }), (events, most) => {
        const window = new MinuteWindow();
        let now = 0;
        for (const [pass, amount] of events) {
          now += pass;
          window.add(amount, now);
        }
        const wait = window.msUntil(most, now);
        if (wait > 0) expect(window.count(now + wait - 1)).toBeGreaterThan(most);
        expect(window.count(now + wait)).toBeLessThanOrEqual(most);
      }),
    );
  });
});
