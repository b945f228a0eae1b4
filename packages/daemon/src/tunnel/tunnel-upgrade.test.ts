import { expect, test } from "vitest";
import { upgradeRetryMs } from "./tunnel-upgrade.ts";

test.each([
  ["seconds", { "retry-after": "7" }, 7000],
  [
    "a date, counted from the server's own clock",
    { "retry-after": "Wed, 21 Oct 2015 07:28:30 GMT", date: "Wed, 21 Oct 2015 07:28:00 GMT" },
    30_000,
  ],
  ["a date in the past", { "retry-after": "Wed, 21 Oct 2015 07:28:00 GMT", date: "Wed, 21 Oct 2015 07:28:30 GMT" }, 0],
  ["a date without a clock", { "retry-after": "Wed, 21 Oct 2015 07:28:00 GMT" }, 0],
  ["nonsense", { "retry-after": "soon" }, 0],
  ["a negative number", { "retry-after": "-1" }, 0],
  ["nothing", {}, 0],
])("retry-after may be %s", (_name, headers, expected) => {
  expect(upgradeRetryMs(headers)).toBe(expected);
});
