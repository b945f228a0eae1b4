import { describe, expect, test } from "vitest";
import { StreamIds } from "./stream-ids.ts";

describe("stream IDs", () => {
  test("are odd, and start over after the last one", () => {
    const ids = new StreamIds(0xffff_fffd);
    const none = new Set<number>();
    expect([ids.take(none), ids.take(none), ids.take(none)]).toEqual([0xffff_fffd, 0xffff_ffff, 1]);
  });

  test("skip the IDs of open streams", () => {
    const ids = new StreamIds(0xffff_ffff);
    expect(ids.take(new Set([0xffff_ffff, 1, 5]))).toBe(3);
    expect(ids.take(new Set([5]))).toBe(7);
  });
});
