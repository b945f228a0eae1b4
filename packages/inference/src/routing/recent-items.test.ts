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
  test("are found by whom they were told, and by nobody else", () => {
    const { ann, bob } = memory();
    ann.remember([item("msg_1"), item("fc_1")]);
    expect(ann.find("msg_1")).toEqual(item("msg_1"));
    expect(ann.find("fc_1")).toEqual(item("fc_1"));
    expect(bob.find("msg_1")).toBeUndefined();
    expect(ann.find("__proto__")).toBeUndefined();
  });

  test("are what was told last under an id", () => {
    const { ann, recent } = memory();
    ann.remember([item("msg_1", 100)]);
    ann.remember([item("msg_1", 5)]);
    expect(ann.find("msg_1")).toEqual(item("msg_1", 5));
    expect(recent.bytes).toBe(JSON.stringify(item("msg_1", 5)).length);
  });

  test("are forgotten after an hour, and their room is given back", () => {
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

  test("of one caller take no more than its share, and cost others nothing", () => {
    const { recent, ann, bob } = memory();
    bob.remember([item("kept")]);
    for (let i = 0; i < 100; i++) ann.remember([item(`a${i}`, 50_000)]);
    expect(ann.find("a0")).toBeUndefined();
    expect(ann.find("a99")).toBeDefined();
    expect(bob.find("kept")).toBeDefined();
    expect(recent.bytes).toBeLessThan(1.1 * 1024 * 1024);
  });

  test("of all callers stay under one limit; who was told nothing for the longest time is forgotten first", () => {
    const { recent, ann, bob } = memory();
    ann.remember([item("a")]);
    bob.remember([item("b")]);
    ann.remember([item("a2")]);
    for (let i = 0; i < 70; i++) recent.of(`c${i}`).remember([1, 2, 3, 4].map((n) => item(`${n}`, 250_000)));
    expect(recent.bytes).toBeLessThanOrEqual(64 * 1024 * 1024);
    expect(bob.find("b")).toBeUndefined();
    expect(recent.of("c69").find("1")).toBeDefined();
  });

  test("that are too long to be kept, or have no id, are left out", () => {
    const { recent, ann } = memory();
    ann.remember([item("long", 300_000), { id: null }, {}]);
    expect(ann.find("long")).toBeUndefined();
    expect(recent.bytes).toBe(0);
  });
});
