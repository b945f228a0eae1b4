import type { IncomingMessage } from "node:http";
import { DomainError } from "@fairlead/protocol/errors";
import { beforeEach, expect, test } from "vitest";
import { BoundCounters } from "../../telemetry/bounds/bound-counters.ts";
import { RateLimit } from "../limits/rate-limit.ts";
import { UpgradeGuard } from "./upgrade-guard.ts";

const FAILURES = 3;

let bounds: BoundCounters;
let guard: UpgradeGuard;

beforeEach(() => {
  bounds = new BoundCounters();
  guard = new UpgradeGuard({
    failures: new RateLimit({ what: "failed upgrades", limit: FAILURES, seconds: 60 }),
    clientOf: ({ url = "" }) => url,
    bounds,
    maxPending: 4,
    maxPendingPerAddress: 2,
  });
});

/** @returns "in", or the code of the refusal. */
async function attempt(address: string, outcome: () => Promise<void>): Promise<string> {
  try {
    await guard.authenticate({ url: address } as IncomingMessage, outcome);
    return "in";
  } catch (error) {
    return error instanceof DomainError ? error.code : "broken";
  }
}

const good = async (): Promise<void> => undefined;
const failing = (code: "invalid_credential" | "expired_credential") => async (): Promise<void> => {
  throw new DomainError(code, "No.");
};

test("a failure is charged to its address, and a valid credential is still accepted from there", async () => {
  const failures = async (address: string): Promise<string[]> => {
    const codes: string[] = [];
    for (let n = 0; n < FAILURES + 2; n++) codes.push(await attempt(address, failing("invalid_credential")));
    return codes;
  };
  const beyond = ["rate_limit_exceeded", "rate_limit_exceeded"];
  expect(await failures("192.0.2.1")).toEqual([...Array(FAILURES).fill("invalid_credential"), ...beyond]);
  expect(await attempt("192.0.2.1", good)).toBe("in");
  expect(await attempt("192.0.2.2", failing("invalid_credential"))).toBe("invalid_credential");
  expect(bounds.counts.get("failed_upgrades")).toBe(2);
});

test("an IPv6 client is charged by its network", async () => {
  const codes: string[] = [];
  for (let n = 0; n <= FAILURES; n++) codes.push(await attempt(`2001:db8::${n}`, failing("invalid_credential")));
  expect(codes.at(-1)).toBe("rate_limit_exceeded");
});

test("an expired token of this installation is not a failure, because its daemon must learn to renew it", async () => {
  for (let n = 0; n < 2 * FAILURES; n++) {
    expect(await attempt("192.0.2.1", failing("expired_credential"))).toBe("expired_credential");
  }
  expect(await attempt("192.0.2.1", failing("invalid_credential"))).toBe("invalid_credential");
});

test("by default, a fleet behind one address can authenticate concurrently", async () => {
  const failures = new RateLimit({ what: "failed upgrades", limit: FAILURES, seconds: 60 });
  guard = new UpgradeGuard({ failures, clientOf: () => "192.0.2.1", bounds });
  const outcomes = await Promise.all(Array.from({ length: 1001 }, () => attempt("192.0.2.1", good)));
  expect(outcomes.filter((outcome) => outcome === "in")).toHaveLength(1000);
});

test("limits concurrent authentications, by address and in total", async () => {
  const held = Promise.withResolvers<void>();
  const wait = (): Promise<void> => held.promise;
  const first = ["a", "a", "b", "b"].map((address) => attempt(address, wait));
  expect(await attempt("a", good)).toBe("overloaded");
  expect(await attempt("c", good)).toBe("overloaded");
  held.resolve();
  expect(await Promise.all(first)).toEqual(["in", "in", "in", "in"]);
  expect(await Promise.all([attempt("a", good), attempt("c", good)])).toEqual(["in", "in"]);
  expect(bounds.counts.get("upgrade_authentications")).toBe(2);
});
