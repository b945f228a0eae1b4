import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { aloneOn } from "../../packages/control-plane/src/installation/cluster/membership.ts";
import { loadConfig } from "../../packages/control-plane/src/installation/config/config.ts";
import type { OpenedDatabase } from "../../packages/control-plane/src/installation/db/open.ts";
import { BillingService } from "../../packages/control-plane/src/money/billing/billing-service.ts";
import { BoundCounters } from "../../packages/control-plane/src/telemetry/bounds/bound-counters.ts";
import { openMemoryStore } from "../../packages/control-plane/src/testing.fixture.ts";
import { systemClock } from "../../packages/protocol/src/values/clock.ts";
import { systemIds } from "../../packages/protocol/src/values/ids.ts";
import { DataPlane, PROJECT_KEY } from "../support/data-plane.ts";

const PROJECT = "prj_1";
const TINY = { name: "tiny", maxOutputTokens: 100, prices: { input: 3_000_000, output: 7_000_000, perRequest: 5 } };
const EVERY_OTHER = { name: "*", maxOutputTokens: 100, prices: { input: 1_000_000, output: 1_000_000 } };
const USAGE = { prompt_tokens: 10, completion_tokens: 20, total_tokens: 30 };

/** Models of a node's engine, through the tunnel, with prices of the server's settings, where calls are paid beforehand. */
describe("prices of node engines", () => {
  let store: OpenedDatabase;
  let billing: BillingService;
  let plane: DataPlane;
  beforeEach(async () => {
    store = await openMemoryStore();
  });
  afterEach(async () => {
    await plane.stop();
    await billing.close();
    await store.close();
  });

  async function start(nodeModels: readonly object[]): Promise<void> {
    const env = { FAIRLEAD_BILLING_MODE: "prepaid", FAIRLEAD_PROVIDERS_NODE_MODELS: JSON.stringify(nodeModels) };
    const { billing: settings, providers } = loadConfig({ env });
    const ports = { clock: systemClock, ids: systemIds(() => Date.now()), log: pino({ level: "silent" }) };
    billing = new BillingService({
      ...ports,
      bounds: new BoundCounters(),
      membership: aloneOn("inc_1"),
      ...store,
      mode: settings.mode,
    });
    const credit = { projectId: PROJECT, kind: "credit", amount: 10_000, note: "" } as const;
    await billing.change(credit, (write) => store.db.transaction().execute(write));
    plane = new DataPlane({ nodeModels: providers.nodeModels, billing });
    plane.engine.script = (_request, response) =>
      response
        .writeHead(200, { "content-type": "application/json" })
        .end(JSON.stringify({ choices: [], usage: USAGE }));
    await plane.start();
  }
  async function call(model: string): Promise<{ readonly status: number; readonly text: string }> {
    const response = await fetch(`${plane.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${PROJECT_KEY}`, "content-type": "application/json" },
      body: JSON.stringify({ model, messages: [{ role: "user", content: "Hi" }] }),
    });
    return { status: response.status, text: await response.text() };
  }
  /** Once nothing runs any more. */
  async function left(): Promise<number> {
    const account = await billing.account(PROJECT);
    while (account.running > 0) await new Promise(setImmediate);
    return account.balance;
  }

  test("apply to calls by the node's name and by the name of all nodes", async () => {
    await start([TINY]);
    expect((await call("node-1/tiny")).status).toBe(200);
    expect(await left()).toBe(10_000 - 175);
    expect((await call("nodes/tiny")).status).toBe(200);
    expect(await left()).toBe(10_000 - 350);
  });

  test("are required for every model: a call without one is refused and does not reach the engine", async () => {
    await start([TINY]);
    const refused = await call("node-1/org/large");
    expect(refused.status).toBe(503);
    expect(JSON.parse(refused.text)).toMatchObject({ error: { code: "not_configured" } });
    expect(plane.engine.requests).toEqual([]);
    expect(await left()).toBe(10_000);
  });

  test("can be the same for all models without their own price, and can be zero on purpose", async () => {
    await start([TINY, EVERY_OTHER]);
    expect((await call("node-1/org/large")).status).toBe(200);
    expect(await left()).toBe(10_000 - 30);
    expect((await call("node-1/tiny")).status).toBe(200);
    expect(await left()).toBe(10_000 - 30 - 175);
    await plane.stop();
    await billing.close();
    await store.close();
    store = await openMemoryStore();
    await start([{ name: "*", prices: { input: 0, output: 0 } }]);
    expect((await call("node-1/tiny")).status).toBe(200);
    expect(await left()).toBe(10_000);
  });
});
