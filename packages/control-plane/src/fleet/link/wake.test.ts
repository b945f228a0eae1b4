import { describe, expect, it } from "vitest";
import { Wake } from "./wake.ts";

const LONG = { timeoutMs: 60_000 };

describe("a wake-up bell", () => {
  it("remembers exactly one ring while nobody waits", async () => {
    const wake = new Wake();
    wake.ring();
    wake.ring();
    await wake.next(LONG);
    const second = wake.next(LONG).then(() => "rung");
    await expect(Promise.race([second, Promise.resolve("waiting")])).resolves.toBe("waiting");
    wake.ring();
    await expect(second).resolves.toBe("rung");
  });

  it("returns on timeout, and when the signal aborts before or during the wait", async () => {
    const wake = new Wake();
    await wake.next({ timeoutMs: 1 });
    await wake.next({ ...LONG, signal: AbortSignal.abort() });
    const stop = new AbortController();
    const waiting = wake.next({ ...LONG, signal: stop.signal });
    stop.abort();
    await waiting;
  });
});
