import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { startDailySweep } from "./daily-sweep.ts";
import type { MachineSweep } from "./machine-sweep-service.ts";

const DAY_MS = 24 * 3_600_000;
const NOTHING: MachineSweep = { orphans: [], missing: [], unseen: [] };
const MISSING = { provider: "hetzner", nodeId: "nod_1", machineId: "7" };

describe("the daily sweep", () => {
  let sweeps: number;
  let found: () => Promise<MachineSweep>;
  let lines: string[];
  let stop: () => Promise<void>;

  beforeEach(() => {
    vi.useFakeTimers();
    sweeps = 0;
    lines = [];
    found = async () => NOTHING;
    stop = async () => undefined;
  });
  afterEach(async () => {
    await stop();
    vi.useRealTimers();
  });

  async function start(): Promise<void> {
    const daily = (): Promise<MachineSweep> => {
      sweeps += 1;
      return found();
    };
    stop = startDailySweep({ daily }, pino({}, { write: (line: string) => void lines.push(line) }));
    await vi.advanceTimersByTimeAsync(0);
  }

  test("runs at startup and once a day, and logs nothing when everything matches", async () => {
    await start();
    expect(sweeps).toBe(1);
    await vi.advanceTimersByTimeAsync(DAY_MS - 1);
    expect(sweeps).toBe(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(sweeps).toBe(2);
    expect(lines).toEqual([]);
  });

  test("warns about differences, and about providers that it could not check", async () => {
    found = async () => ({ ...NOTHING, missing: [MISSING] });
    await start();
    expect(lines.join()).toMatch(/"orphans":0,"missing":1,"unseen":\[\].*rented machines and nodes differ/);
    found = async () => ({ ...NOTHING, unseen: [{ provider: "hetzner", message: "it is away" }] });
    await vi.advanceTimersByTimeAsync(DAY_MS);
    expect(lines.at(-1)).toContain("it is away");
  });

  test("is logged when it fails, and runs again the next day", async () => {
    found = () => Promise.reject(new Error("the store is away"));
    await start();
    expect(lines.join()).toMatch(/the store is away.*the machine sweep failed/);
    await vi.advanceTimersByTimeAsync(DAY_MS);
    expect(sweeps).toBe(2);
  });

  test("finishes before shutdown, and does not run again after it", async () => {
    let end = (): void => undefined;
    found = () => new Promise((resolve) => (end = () => resolve(NOTHING)));
    await start();
    let ended = false;
    const ending = stop().then(() => (ended = true));
    await vi.advanceTimersByTimeAsync(0);
    expect(ended).toBe(false);
    end();
    await ending;
    await vi.advanceTimersByTimeAsync(2 * DAY_MS);
    expect(sweeps).toBe(1);
  });
});
