import { describe, expect, test } from "vitest";
import { Admission, type Ticket } from "./admission.ts";

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

describe("a busy host", () => {
  const busy = (): Admission => new Admission({ maxCallsInFlight: 8, maxBufferedBytes: 800 });
  const overloaded = expect.objectContaining({ code: "overloaded", retryAfterSeconds: 1 }) as unknown;

  test("keeps room for projects that have little on it", () => {
    const host = busy();
    const take = (projectId: string): Ticket => {
      const ticket = host.enter();
      try {
        ticket.belongsTo(projectId);
        return ticket;
      } catch (error) {
        ticket.leave();
        throw error;
      }
    };
    const greedy = Array.from({ length: 6 }, () => take("prj_greedy"));
    expect(() => take("prj_greedy")).toThrow(overloaded);
    take("prj_other");
    take("prj_third");
    expect(host.load.callsInFlight).toBe(8);
    for (const ticket of greedy) ticket.leave();
    expect(host.load.callsInFlight).toBe(2);
    for (let n = 0; n < 4; n++) take("prj_greedy");
  });

  test("keeps room for their bodies, and gives back what a project held", () => {
    const host = busy();
    const greedy = host.enter();
    greedy.belongsTo("prj_greedy");
    greedy.holdBytes(600);
    expect(() => greedy.holdBytes(601)).toThrow(overloaded);
    const other = host.enter();
    other.belongsTo("prj_other");
    other.holdBytes(200);
    other.leave();
    greedy.releaseBytes();
    greedy.holdBytes(600);
    greedy.leave();
    expect(host.load).toEqual({ callsInFlight: 0, bufferedBytes: 0 });
  });
});
