import { expect, test } from "vitest";
import { BoundCounters } from "../../telemetry/bounds/bound-counters.ts";
import { DownloadSlots } from "./download-slots.ts";

test("downloads are limited per network and in total, and a released slot is free again", () => {
  const bounds = new BoundCounters();
  const slots = new DownloadSlots(bounds, { perNetwork: 2, total: 3 });
  const giveBack = slots.take("a");
  slots.take("a");
  expect(() => slots.take("a")).toThrow(expect.objectContaining({ code: "overloaded", retryAfterSeconds: 10 }));
  slots.take("b");
  expect(() => slots.take("c")).toThrow(expect.objectContaining({ code: "overloaded" }));
  expect(bounds.counts.get("daemon_downloads")).toBe(2);
  giveBack();
  slots.take("c");
});
