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

describe("what is open through the relay", () => {
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

  test("is cut when the right behind its token is gone, and only that", async () => {
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

  test("is asked after once for all that one token has opened", async () => {
    const claims = claimsOf("usr_ann");
    for (let opened = 0; opened < 10; opened++) open.add(claims, () => undefined);
    await vi.advanceTimersByTimeAsync(100);
    expect(asked).toBe(1);
  });

  test("goes on while the store is away, since that says nothing of anybody's right", async () => {
    let cut = 0;
    open.add(claimsOf("usr_ann"), () => cut++);
    verdict = () => new DomainError("unavailable", "Later.");
    await vi.advanceTimersByTimeAsync(1000);
    verdict = () => new Error("connect ECONNREFUSED");
    await vi.advanceTimersByTimeAsync(1000);
    expect(cut).toBe(0);
  });

  test("ends a day after it was opened, whatever its right", async () => {
    let cut = 0;
    open.add(claimsOf("usr_ann"), () => cut++);
    now = 24 * HOUR_MS - 1;
    await vi.advanceTimersByTimeAsync(100);
    expect(cut).toBe(0);
    now += 1;
    await vi.advanceTimersByTimeAsync(100);
    expect(cut).toBe(1);
  });

  test("is forgotten once it has ended, and then nobody is asked about any more", async () => {
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
