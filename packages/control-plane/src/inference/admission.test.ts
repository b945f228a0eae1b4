import { describe, expect, test } from "vitest";
import { Admission } from "./admission.ts";

const admission = (): Admission => new Admission({ maxCallsInFlight: 2, maxBufferedBytes: 100 });

describe("admission", () => {
  test("refuses a call over the cap at once, and takes one again when another has left", () => {
    const host = admission();
    host.enter();
    const second = host.enter();
    expect(() => host.enter()).toThrow(expect.objectContaining({ code: "overloaded", retryAfterSeconds: 1 }));
    second.leave();
    second.leave();
    expect(host.load.callsInFlight).toBe(1);
    host.enter();
  });

  test("refuses bytes over the budget of all calls, and keeps what was held", () => {
    const host = admission();
    const first = host.enter();
    const second = host.enter();
    first.holdBytes(60);
    first.holdBytes(50);
    expect(() => second.holdBytes(41)).toThrow(expect.objectContaining({ code: "overloaded" }));
    expect(host.load.bufferedBytes).toBe(60);
    first.releaseBytes();
    second.holdBytes(100);
    second.leave();
    expect(host.load.bufferedBytes).toBe(0);
  });

  test("is idle once the last call has left", async () => {
    const host = admission();
    await host.whenIdle();
    const ticket = host.enter();
    let idle = false;
    const waiting = host.whenIdle().then(() => {
      idle = true;
    });
    await Promise.resolve();
    expect(idle).toBe(false);
    ticket.leave();
    await waiting;
  });

  test("refuses every call after it was stopped", () => {
    const host = admission();
    host.stop();
    expect(() => host.enter()).toThrow(expect.objectContaining({ code: "unavailable" }));
  });
});
