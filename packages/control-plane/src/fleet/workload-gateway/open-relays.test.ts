import { DomainError } from "@fairlead/protocol/errors";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { WorkloadClaims } from "../../access/auth/tokens/tokens.ts";
import { OpenRelays } from "./open-relays.ts";

const claimsOf = (userId: string): WorkloadClaims => ({
  audience: "workload",
  nodeId: "nod_1",
  workload: "engine",
  projectId: "prj_1",
  keyThumbprint: "thumb",
  holder: { userId, sessionId: "sis_1" },
});

describe("an open relay connection", () => {
  const HOUR_MS = 3_600_000;
  let now: number;
  let asked: number;
  let verdict: (claims: WorkloadClaims) => Error | null;
  let open: OpenRelays;

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    [now, asked, verdict] = [0, 0, () => null];
    open = new OpenRelays({
      tokens: {
        confirm: async (claims) => {
          asked += 1;
          const error = verdict(claims);
          if (error !== null) throw error;
        },
      },
      clock: { now: () => now, monotonic: () => now },
      maxMs: 24 * HOUR_MS,
      sweepMs: 100,
    });
  });
  afterEach(() => vi.useRealTimers());

  test("is closed when its token is no longer authorized, and others stay open", async () => {
    const [ann, bob] = [claimsOf("usr_ann"), claimsOf("usr_bob")];
    const cut: string[] = [];
    open.add(ann, () => cut.push("ann"));
    open.add(ann, () => cut.push("ann too"));
    open.add(bob, () => cut.push("bob"));
    await vi.advanceTimersByTimeAsync(1000);
    expect(cut).toEqual([]);
    verdict = (claims) => (claims === ann ? new DomainError("invalid_credential", "Gone.") : null);
    await vi.advanceTimersByTimeAsync(100);
    expect(cut).toEqual(["ann", "ann too"]);
  });

  test("is checked once for all connections of its token", async () => {
    const claims = claimsOf("usr_ann");
    for (let opened = 0; opened < 10; opened++) open.add(claims, () => undefined);
    await vi.advanceTimersByTimeAsync(100);
    expect(asked).toBe(1);
  });

  test("stays open while the store is unavailable, because that does not revoke anything", async () => {
    let cut = 0;
    open.add(claimsOf("usr_ann"), () => cut++);
    verdict = () => new DomainError("unavailable", "Later.");
    await vi.advanceTimersByTimeAsync(1000);
    verdict = () => new Error("connect ECONNREFUSED");
    await vi.advanceTimersByTimeAsync(1000);
    expect(cut).toBe(0);
  });

  test("ends a day after it was opened, even if it is still authorized", async () => {
    let cut = 0;
    open.add(claimsOf("usr_ann"), () => cut++);
    now = 24 * HOUR_MS - 1;
    await vi.advanceTimersByTimeAsync(100);
    expect(cut).toBe(0);
    now += 1;
    await vi.advanceTimersByTimeAsync(100);
    expect(cut).toBe(1);
  });

  test("is removed when it ends, and is then no longer checked", async () => {
    const claims = claimsOf("usr_ann");
    const ends = [open.add(claims, () => undefined), open.add(claims, () => undefined)];
    expect(vi.getTimerCount()).toBe(1);
    for (const end of ends) end();
    expect(vi.getTimerCount()).toBe(0);
    await vi.advanceTimersByTimeAsync(1000);
    expect(asked).toBe(0);
    open.add(claims, () => undefined);
    await vi.advanceTimersByTimeAsync(100);
    expect(asked).toBe(1);
  });
});
