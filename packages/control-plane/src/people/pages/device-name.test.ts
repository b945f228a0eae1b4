import { expect, test } from "vitest";
import { deviceName } from "./device-name.ts";

const CHROME = "AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36";

test.each([
  [`Mozilla/5.0 (X11; Linux x86_64) ${CHROME}`, "Chrome on Linux"],
  [`Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${CHROME} Edg/141.0.0.0`, "Edge on Windows"],
  ["Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:144.0) Gecko/20100101 Firefox/144.0", "Firefox on macOS"],
  [
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1",
    "Safari on iPhone",
  ],
  [`Mozilla/5.0 (Linux; Android 15) ${CHROME} Mobile`, "Chrome on Android"],
  ["Fairlead CLI", "Fairlead CLI"],
  ["Mozilla/5.0 (Plan 9)", "Unknown browser"],
  ["", "Unknown device"],
  [null, "Unknown device"],
])("%s is shown as %s", (userAgent, name) => {
  expect(deviceName(userAgent)).toBe(name);
});

test("a name of any length is shown on one line", () => {
  expect(deviceName("x".repeat(10_000))).toHaveLength(60);
});
