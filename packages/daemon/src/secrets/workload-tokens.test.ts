import type { WorkerTokenAnswer } from "@fairlead/protocol/daemon-link";
import { WORKER_TOKEN_FILE } from "@fairlead/protocol/secrets";
import { afterEach, beforeEach, expect, test } from "vitest";
import { aDesiredState, anAgent, aSpec } from "../testing/builders.ts";
import { FakeTime, settle } from "../testing/fake-time.ts";
import { silentLog } from "../testing/silent-log.ts";
import { WorkloadTokens } from "./workload-tokens.ts";

const LIFE_SECONDS = 3600;

/** A control plane whose tokens are numbered. */
class Platform {
  readonly asked: string[] = [];
  readonly dead = new Set<string>();
  down = false;
  gate: Promise<void> = Promise.resolve();

  async workerToken({ workloadId }: { readonly workloadId: string }): Promise<WorkerTokenAnswer> {
    this.asked.push(workloadId);
    const token = `${workloadId}-${this.asked.length}`;
    await this.gate;
    if (this.down) throw new Error("the call failed");
    return this.dead.has(workloadId) ? { state: "none" } : { state: "issued", token, expiresIn: LIFE_SECONDS };
  }
}

const a = anAgent({ workloadId: "agt_a" });
const b = anAgent({ workloadId: "agt_b" });
const wants = (generation: number, ...workloads: ReturnType<typeof anAgent>[]) =>
  aDesiredState({ generation, workloads });

let time: FakeTime;
let platform: Platform;
let held: Map<string, string>;
let tokens: WorkloadTokens;

beforeEach(() => {
  time = new FakeTime();
  platform = new Platform();
  held = new Map();
  tokens = new WorkloadTokens({
    files: {
      put: (workloadId, name, bytes) => void held.set(`${workloadId} ${name}`, Buffer.from(bytes).toString()),
      withdraw: (workloadId, name) => void held.delete(`${workloadId} ${name}`),
    },
    timers: time,
    random: () => 0,
    log: silentLog,
  });
});
afterEach(() => tokens.close());

const tokenOf = (workloadId: string): string | undefined => held.get(`${workloadId} ${WORKER_TOKEN_FILE}`);

test("each workload that requests a token receives its own, and no other workload does", async () => {
  tokens.desiredChanged(wants(1, a, b, aSpec()));
  tokens.attach(platform);
  await settle();
  expect(platform.asked).toEqual(["agt_a", "agt_b"]);
  expect([tokenOf("agt_a"), tokenOf("agt_b")]).toEqual(["agt_a-1", "agt_b-2"]);
});

test("a token is renewed at two thirds of its lifetime, and not before", async () => {
  tokens.desiredChanged(wants(1, a));
  tokens.attach(platform);
  await time.advance((LIFE_SECONDS * 1000 * 2) / 3 - 1000);
  expect(tokenOf("agt_a")).toBe("agt_a-1");
  await time.advance(2000);
  expect(tokenOf("agt_a")).toBe("agt_a-2");
});

test("a new desired state, which may mean a new run, requests a token immediately and drops late responses", async () => {
  const first = Promise.withResolvers<void>();
  platform.gate = first.promise;
  tokens.attach(platform);
  tokens.desiredChanged(wants(1, a));
  platform.gate = Promise.resolve();
  tokens.desiredChanged(wants(2, a));
  await settle();
  expect(tokenOf("agt_a")).toBe("agt_a-2");
  first.resolve();
  await settle();
  expect(tokenOf("agt_a")).toBe("agt_a-2");
});

test("a removed workload has no token, not even from a pending response, and starts again without the last one", async () => {
  tokens.desiredChanged(wants(1, a, b));
  tokens.attach(platform);
  await settle();
  const late = Promise.withResolvers<void>();
  platform.gate = late.promise;
  tokens.desiredChanged(wants(2, a, b));
  tokens.desiredChanged(wants(3, b));
  expect(tokenOf("agt_a")).toBeUndefined();
  late.resolve();
  await settle();
  expect([tokenOf("agt_a"), tokenOf("agt_b")]).toEqual([undefined, "agt_b-5"]);
  platform.down = true;
  tokens.desiredChanged(wants(4, a, b));
  await settle();
  expect(tokenOf("agt_a")).toBeUndefined();
});

test("a restarted run does not begin with the previous run's token", async () => {
  tokens.desiredChanged(wants(1, a, b));
  tokens.attach(platform);
  await settle();
  platform.down = true;
  tokens.desiredChanged(wants(2, { ...a, restarts: 1 }, b));
  await settle();
  expect([tokenOf("agt_a"), tokenOf("agt_b")]).toEqual([undefined, "agt_b-2"]);
  platform.down = false;
  await time.advance(60_000);
  expect(tokenOf("agt_a")).toBeDefined();
});

test("a failed request is repeated, and the held token is kept meanwhile", async () => {
  tokens.desiredChanged(wants(1, a));
  tokens.attach(platform);
  await settle();
  platform.down = true;
  tokens.desiredChanged(wants(2, a));
  await settle();
  expect(tokenOf("agt_a")).toBe("agt_a-1");
  platform.down = false;
  await time.advance(60_000);
  expect(tokenOf("agt_a")).toMatch(/^agt_a-[2-9]/);
});

test("a token that the platform no longer knows is dropped immediately, and requested again", async () => {
  tokens.desiredChanged(wants(1, a));
  tokens.attach(platform);
  await settle();
  platform.dead.add("agt_a");
  tokens.desiredChanged(wants(2, a));
  await settle();
  expect(tokenOf("agt_a")).toBeUndefined();
  platform.dead.clear();
  await time.advance(60_000);
  expect(tokenOf("agt_a")).toBeDefined();
});

test("a link that reconnects requests due tokens, and no token that is still valid", async () => {
  tokens.desiredChanged(wants(1, a));
  tokens.attach(platform);
  await settle();
  tokens.detach();
  await time.advance(60_000);
  tokens.attach(platform);
  await settle();
  expect(platform.asked).toHaveLength(1);
  tokens.detach();
  await time.advance(LIFE_SECONDS * 1000);
  expect(tokenOf("agt_a")).toBe("agt_a-1");
  tokens.attach(platform);
  await settle();
  expect(tokenOf("agt_a")).toBe("agt_a-2");
});
