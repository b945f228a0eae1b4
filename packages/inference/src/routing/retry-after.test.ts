import { expect, test } from "vitest";
import { retryAfterSeconds } from "./retry-after.ts";

const NOW = Date.parse("2026-10-21T07:28:00Z");

test.each([
  [{ "retry-after": "7" }, 7],
  [{ "retry-after": " 7 " }, 7],
  [{ "retry-after": "0.5" }, 0.5],
  [{ "retry-after-ms": "1500", "retry-after": "9" }, 1.5],
  [{ "x-ms-retry-after-ms": "250" }, 0.25],
  [{ "retry-after-ms": "soon", "retry-after": "9" }, 9],
  [{ "retry-after": "Wed, 21 Oct 2026 07:28:30 GMT" }, 30],
  [{ "retry-after": "Wednesday, 21-Oct-26 07:28:30 GMT" }, 30],
  [{ "retry-after": "Wed Oct 21 07:28:30 2026 GMT" }, 30],
  [{ "retry-after": "Wed, 21 Oct 2026 09:00:10 GMT", date: "Wed, 21 Oct 2026 09:00:00 GMT" }, 10],
  [{ "retry-after": "Wed, 21 Oct 2026 07:28:30 GMT", date: "yesterday" }, 30],
  [{ "retry-after": "Wed, 21 Oct 2020 07:28:30 GMT" }, undefined],
  [{ "retry-after": "Wed, 99 Oct 2026 07:28:30 GMT" }, undefined],
  [{ "retry-after": "99999999999" }, 3600],
  [{ "retry-after-ms": "1e9", "retry-after": "9" }, 9],
  [{ "retry-after": "Fri, 31 Dec 9999 23:59:59 GMT" }, 3600],
  [{ "retry-after": "soon" }, undefined],
  [{ "retry-after": "-1" }, undefined],
  [{ "retry-after": "0" }, undefined],
  [{ "retry-after": "" }, undefined],
  [{ "retry-after": "Infinity" }, undefined],
  [{}, undefined],
])("an upstream that sends %j is retried after %s seconds", (headers, seconds) => {
  expect(retryAfterSeconds(headers, NOW)).toBe(seconds);
});
