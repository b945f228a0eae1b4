import { describe, expect, test } from "vitest";
import { readMoment } from "./moment.ts";

const now = Date.UTC(2026, 2, 1, 12);
const ahead = { now, durations: "ahead", days: "end" } as const;
const ago = { now, durations: "ago", days: "begin" } as const;

describe("readMoment", () => {
  test.each([
    ["30d", ahead, "2026-03-31T12:00:00.000Z"],
    ["12h", ago, "2026-03-01T00:00:00.000Z"],
    ["2026-12-31", ahead, "2027-01-01T00:00:00.000Z"],
    ["2026-12-31", ago, "2026-12-31T00:00:00.000Z"],
    ["2026-12-31T18:00:00+02:00", ahead, "2026-12-31T16:00:00.000Z"],
  ])("reads %s", (text, meaning, expected) => {
    expect(readMoment(text, meaning)).toBe(expected);
  });

  test.each(["", "soon", "2026-06-31", "2026-13-01", "2026-12-31T25:00:00Z", "31.12.2026", "2026-12-31T18:00"])(
    "refuses %j",
    (text) => {
      expect(() => readMoment(text, ahead)).toThrow(/is not a time\. Use a format such as 30d/);
    },
  );

  test("refuses an invalid duration", () => {
    expect(() => readMoment("0d", ahead)).toThrow("not a duration");
  });
});
