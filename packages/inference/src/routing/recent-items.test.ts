import { describe, expect, test } from "vitest";
import { RecentItems } from "./recent-items.ts";

const HOUR_MS = 60 * 60_000;

function memory() {
  let now = 0;
  const recent = new RecentItems({ now: () => now, monotonic: () => now });
  return { recent, ann: recent.of("ann"), bob: recent.of("bob"), pass: (ms: number) => void (now += ms) };
}

const item = (id: string, bytes = 10) => ({ id, type: "message", text: "x".repeat(bytes) });

describe("recent items", () => {
  test("are found only by the caller that received them", () => {
    const { ann, bob } = memory();
    ann.remember([item("msg_1"), item("fc_1")]);
    expect(ann.find("msg_1")).toEqual(item("msg_1"));
    expect(ann.find("fc_1")).toEqual(item("fc_1"));
    expect(bob.find("msg_1")).toBeUndefined();
    expect(ann.find("__proto__")).toBeUndefined();
  });

  test("are the latest ones for their IDs", () => {
    const { ann, recent } = memory();
    ann.remember([item("msg_1", 100)]);
    ann.remember([item("msg_1", 5)]);
    expect(ann.find("msg_1")).toEqual(item("msg_1", 5));
    expect(recent.bytes).toBe(JSON.stringify(item("msg_1", 5)).length);
  });

  test("are forgotten after an hour, and their memory is released", () => {
    const { recent, ann, bob, pass } = memory();
    ann.remember([item("a")]);
    pass(HOUR_MS / 2);
    ann.remember([item("b")]);
    pass(HOUR_MS / 2);
    expect(ann.find("a")).toBeUndefined();
    expect(ann.find("b")).toEqual(item("b"));
    pass(HOUR_MS / 2);
    bob.remember([item("c")]);
    expect(recent.bytes).toBe(JSON.stringify(item("c")).length);
  });

  test("of one caller are limited to its share and do not displace those of others", () => {
    const { recent, ann, bob } = memory();
    bob.remember([item("kept")]);
    for (let i = 0; i < 100; i++) ann.remember([item(`a${i}`, 50_000)]);
    expect(ann.find("a0")).toBeUndefined();
    expect(ann.find("a99")).toBeDefined();
    expect(bob.find("kept")).toBeDefined();
    expect(recent.bytes).toBeLessThan(1.1 * 1024 * 1024);
  });

  test("of all callers share one limit, and those of the least recently served caller are forgotten first", () => {
    const { recent, ann, bob } = memory();
    ann.remember([item("a")]);
    bob.remember([item("b")]);
    ann.remember([item("a2")]);
    for (let i = 0; i < 70; i++) recent.of(`c${i}`).remember([1, 2, 3, 4].map((n) => item(`${n}`, 250_000)));
    expect(recent.bytes).toBeLessThanOrEqual(64 * 1024 * 1024);
    expect(bob.find("b")).toBeUndefined();
    expect(recent.of("c69").find("1")).toBeDefined();
  });

  test("are not kept if they are too long or have no ID", () => {
    const { recent, ann } = memory();
    ann.remember([item("long", 300_000), { id: null }, {}]);
    expect(ann.find("long")).toBeUndefined();
    expect(recent.bytes).toBe(0);
  });
});
