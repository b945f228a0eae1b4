import { describe, expect, test } from "vitest";
import { parseDuration } from "./duration.ts";

describe("parseDuration", () => {
  test.each([
    ["90", 90],
    ["90s", 90],
    ["30m", 1800],
    ["12h", 43_200],
    ["7d", 604_800],
  ])("reads %s as %i seconds", (text, seconds) => {
    expect(parseDuration(text)).toBe(seconds);
  });

  test.each(["", "0", "0h", "-1h", "1.5h", "12 h", "h", "1w", "12H", "9999999999"])("refuses %j", (text) => {
    expect(() => parseDuration(text)).toThrow(/is not a duration/);
  });
});
