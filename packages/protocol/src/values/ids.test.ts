import { describe, expect, test } from "vitest";
import { encodeId, isId, systemIds } from "./ids.ts";

describe("IDs", () => {
  test("have the form of their kind, and of no other", () => {
    const ids = systemIds(() => 1_700_000_000_000);
    const id = ids.next("project");
    expect(id).toMatch(/^prj_[0-9a-hjkmnp-tv-z]{26}$/);
    expect([isId("project", id), isId("node", id), isId("project", `${id}x`)]).toEqual([true, false, false]);
  });

  test("sort by time, and within one millisecond in order of creation", () => {
    let now = 1_700_000_000_000;
    const ids = systemIds(() => now);
    const made: string[] = [];
    for (let ms = 0; ms < 300; ms++) {
      for (let n = 0; n < 5; n++) made.push(ids.next("auditEvent"));
      now += 1;
    }
    expect(made).toEqual([...new Set(made)].toSorted());
  });

  test("carry increments across bytes", () => {
    const ids = systemIds(() => 1);
    const made = Array.from({ length: 70_000 }, () => ids.next("event"));
    expect(new Set(made).size).toBe(made.length);
    expect(made).toEqual(made.toSorted());
  });

  test("of programs that start at the same moment differ", () => {
    const made = Array.from({ length: 1000 }, () => systemIds(() => 1).next("event"));
    expect(new Set(made).size).toBe(made.length);
  });

  test("hold 48 bits of time and 80 bits of randomness", () => {
    expect(encodeId("event", 0, new Uint8Array(10))).toBe(`evt_${"0".repeat(26)}`);
    expect(encodeId("event", 2 ** 48 - 1, new Uint8Array(10).fill(255))).toBe(`evt_7zzzzzzzzz${"z".repeat(16)}`);
  });
});
