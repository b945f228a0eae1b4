import type { WorkloadConnect } from "@fairlead/protocol/workload-connect";
import { beforeEach, describe, expect, test } from "vitest";
import { RenewedWay } from "./renewed-way.ts";

const MINUTE_MS = 60_000;

describe("the connection to a workload", () => {
  let now: number;
  let asked: number;
  let fails: boolean;
  let way: RenewedWay;

  beforeEach(() => {
    [now, asked, fails] = [0, 0, false];
    const ask = async (): Promise<WorkloadConnect> => {
      asked += 1;
      if (fails) throw new Error("the platform is away");
      return { gatewayUrl: "http://host/gateway", authToken: `token-${asked}` };
    };
    way = new RenewedWay({ ask, clock: { now: () => 0, monotonic: () => now } });
  });

  const token = async (): Promise<string> => (await way.current()).authToken;

  test("is requested once for concurrent callers, and renewed when a third of its lifetime is left", async () => {
    expect(await Promise.all([token(), token()])).toEqual(["token-1", "token-1"]);
    now = 9 * MINUTE_MS;
    expect(await token()).toBe("token-1");
    now = 10 * MINUTE_MS;
    expect(await token()).toBe("token-2");
  });

  test("is used until it expires while it cannot be renewed, and no longer", async () => {
    await token();
    fails = true;
    now = 14 * MINUTE_MS;
    expect(await token()).toBe("token-1");
    now = 15 * MINUTE_MS;
    await expect(token()).rejects.toThrow("away");
  });

  test("is requested again when the gateway rejects it, but a newer one is kept", async () => {
    const first = await way.current();
    way.forget(first);
    expect(await token()).toBe("token-2");
    way.forget(first);
    expect(await token()).toBe("token-2");
  });
});
