import { expect, test } from "vitest";
import { eventEnds } from "./event-splitter.ts";

test.each([
  ["one event", "data: 1\n\n", [9]],
  ["two events", "data: 1\n\ndata: 2\r\n\r\n", [9, 20]],
  ["empty lines after an event, which are not events", "data: 1\n\n\n\r\rdata: 2\n\n", [12, 21]],
  ["empty lines before the first event, which count once", "\n\n\n\ndata: 1\n\n", [4, 13]],
  ["only line ends", "\r".repeat(65_536), [65_536]],
])("%s: each event ends once", (_what, text, ends) => {
  expect(eventEnds(Buffer.from(text))).toEqual(ends);
});
