import { describe, expect, test } from "vitest";
import { formatDollarAmount, parseDollars } from "./money.ts";

describe("money", () => {
  test.each([
    ["25", 25_000_000_000, "$25.00"],
    ["$0.5", 500_000_000, "$0.50"],
    ["0.000000001", 1, "$0.000000001"],
    ["999999.999999999", 999_999_999_999_999, "$999999.999999999"],
    ["0", 0, "$0.00"],
  ])("%s is %i nano-dollars, and is shown as %s", (text, nanoDollars, shown) => {
    expect(parseDollars(text)).toBe(nanoDollars);
    expect(formatDollarAmount(nanoDollars)).toBe(shown);
  });

  test.each(["", "-1", "1,5", "1e3", "1.", ".5", "0.0000000001", "1000000", "5 €"])("%j is not an amount", (text) => {
    expect(parseDollars(text)).toBeNull();
  });
});
