import { beforeEach, describe, expect, test } from "vitest";
import { Admission, type Ticket } from "./admission.ts";

const SHARE = 0.75;
let reached: string[];
const bounds = { reached: (bound: string): void => void reached.push(bound) };

const admission = (): Admission =>
  new Admission({ maxCallsInFlight: 2, maxBufferedBytes: 100, ownerShare: SHARE }, bounds);

beforeEach(() => {
  reached = [];
});

describe("admission", () => {
  test("rejects a call over the limit immediately, and accepts one again when another ends", () => {
    const host = admission();
    host.enter();
    const second = host.enter();
    expect(() => host.enter()).toThrow(expect.objectContaining({ code: "overloaded", retryAfterSeconds: 1 }));
    second.leave();
    second.leave();
    expect(host.load.callsInFlight).toBe(1);
    host.enter();
  });

  test("rejects bytes over the budget of all calls, and keeps what is already reserved", () => {
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

  test("is idle once the last call ends", async () => {
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

  test("rejects every call after it is stopped", () => {
    const host = admission();
    host.stop();
    expect(() => host.enter()).toThrow(expect.objectContaining({ code: "unavailable" }));
  });
});

describe("a busy host", () => {
  const busy = (): Admission =>
    new Admission({ maxCallsInFlight: 8, maxBufferedBytes: 800, ownerShare: SHARE }, bounds);
  const overloaded = expect.objectContaining({ code: "overloaded", retryAfterSeconds: 1 }) as unknown;
  const take = (host: Admission, owner: string): Ticket => {
    const ticket = host.enter();
    try {
      ticket.belongsTo(owner);
      return ticket;
    } catch (error) {
      ticket.leave();
      throw error;
    }
  };

  test("reserves capacity for owners with few calls", () => {
    const host = busy();
    const greedy = Array.from({ length: 6 }, () => take(host, "usr_greedy"));
    expect(() => take(host, "usr_greedy")).toThrow(overloaded);
    expect(reached).toEqual(["calls_in_flight_of_owner"]);
    take(host, "usr_other");
    take(host, "usr_third");
    expect(host.load.callsInFlight).toBe(8);
    for (const ticket of greedy) ticket.leave();
    expect(host.load.callsInFlight).toBe(2);
    for (let n = 0; n < 4; n++) take(host, "usr_greedy");
  });

  test("reserves memory for the bodies and responses of such owners, and releases what an owner held", () => {
    const host = busy();
    const greedy = take(host, "usr_greedy");
    greedy.holdBytes(600);
    expect(() => greedy.holdBytes(601)).toThrow(overloaded);
    expect(greedy.holdAnswerBytes(1)).toMatchObject({ code: "overloaded" });
    expect(() => take(host, "usr_greedy").holdBytes(1)).toThrow(overloaded);
    expect(reached).toEqual(Array(3).fill("buffered_bytes_of_owner"));
    const other = take(host, "usr_other");
    other.holdBytes(150);
    other.leave();
    greedy.releaseBytes();
    greedy.holdBytes(600);
    greedy.leave();
    expect(host.load.bufferedBytes).toBe(0);
  });

  test("counts rejections for lack of capacity", () => {
    const host = busy();
    const tickets = Array.from({ length: 8 }, () => host.enter());
    expect(() => host.enter()).toThrow(overloaded);
    tickets[0]?.holdBytes(800);
    expect(() => tickets[1]?.holdBytes(1)).toThrow(overloaded);
    expect(reached).toEqual(["calls_in_flight", "buffered_bytes"]);
  });
});
