import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { type OpenedDatabase, openDatabase } from "../../packages/control-plane/src/installation/db/open.ts";
import { BillingStore } from "../../packages/control-plane/src/money/billing/billing-store.ts";
import type { LedgerEntry } from "../../packages/control-plane/src/money/billing/ledger.ts";
import { LedgerCheck } from "../../packages/control-plane/src/money/billing/ledger-check.ts";
import { STORES } from "../../packages/control-plane/src/testing.fixture.ts";
import { costOf, type Prices } from "../../packages/inference/src/ports/prices.ts";
import { CACHED_TOKENS, INPUT_TOKENS, MeteredUpstream } from "../support/metered-upstream.ts";
import {
  type DrillCall,
  type DrillResult,
  LIMIT_TOKENS,
  makeCall,
  randomCalls,
  refusalOf,
  seededRandom,
} from "../support/money-calls.ts";
import { TEST_SEED } from "../support/seed.ts";
import { StartedServer } from "../support/started-server.ts";
import { waitFor } from "../support/wait-for.ts";

const PRICES: Prices = { input: 3_000_001, cachedInput: 1_500_000, output: 7_000_003, perRequest: 11 };
const MODEL = { name: "m", maxOutputTokens: 2000, prices: PRICES };
/** What a call of the drill sets aside, a little more than most. */
const HOLD = costOf({ inputTokens: 450, cachedInputTokens: 0, outputTokens: LIMIT_TOKENS }, PRICES);
const POOR_BUDGET = 3 * HOLD;
const SOON_MS = 60_000;
/** Tries of a caller that is told to come again. */
const TRIES = 15;

const withProject = z.object({ project: z.object({ id: z.string() }) });
const withKey = z.object({ key: z.object({ id: z.string(), keyValue: z.string() }) });
const withBalance = z.object({ balanceNanoDollars: z.number(), heldNanoDollars: z.number(), runningCalls: z.number() });

/**
 * Many calls on money for few, of callers that leave, at upstreams that fail in every way, on a server that is killed in the middle
 * and started again.
 */
describe.each(STORES)("money on $name", ({ openShared }) => {
  const random = seededRandom(TEST_SEED);
  const upstream = new MeteredUpstream();
  const results: DrillResult[] = [];
  let dir: string;
  let shared: Awaited<ReturnType<typeof openShared>>;
  let store: OpenedDatabase;
  let ledger: BillingStore;
  let server: StartedServer;
  let token: string;
  let projectId: string;
  let keys: { readonly rich: string; readonly poor: string; readonly poorId: string; readonly single: string };
  let given = 0;

  const settings = (): Record<string, unknown> => ({
    dataDir: dir,
    ...("url" in shared.location ? { database: { url: shared.location.url } } : {}),
    billing: { mode: "prepaid" },
    inference: { maxAttempts: 2, maxRetryWaitSeconds: 0.2 },
    providers: {
      platform: [
        { name: "chatty", baseUrl: upstream.baseUrl, protocols: ["chat"], ...PROVIDER },
        { name: "both", baseUrl: upstream.baseUrl, protocols: ["chat", "responses"], ...PROVIDER },
      ],
    },
  });

  beforeEach(async () => {
    dir = mkdtempSync(join(tmpdir(), "fairlead-money-"));
    shared = await openShared(dir);
    await upstream.start();
    server = await StartedServer.start(settings());
    store = openDatabase(shared.location);
    ledger = new BillingStore(store.db);
    await server.asOperator(async (admin) => {
      await admin.createUser({ email: "ann@example.org", name: "Ann", platformAdmin: false });
      ({ token } = await admin.createToken({ email: "ann@example.org" }));
    });
    projectId = withProject.parse(await api("POST", "/v1/projects", { name: "Drill" })).project.id;
    const made = async (name: string, limits: object): Promise<z.infer<typeof withKey>["key"]> =>
      withKey.parse(await api("POST", `/v1/projects/${projectId}/keys`, { name, limits })).key;
    const poor = await made("poor", { budget: { total: POOR_BUDGET } });
    const single = await made("single", { budget: { total: HOLD } });
    keys = { rich: (await made("rich", {})).keyValue, poor: poor.keyValue, poorId: poor.id, single: single.keyValue };
  });
  afterEach(async () => {
    await server.remove();
    await upstream.stop();
    await store.close();
    await shared.close();
    rmSync(dir, { recursive: true, force: true });
  });

  async function api(method: string, path: string, body?: object): Promise<unknown> {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const response = await fetch(`${server.url}${path}`, { method, headers, ...sent });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return response.json();
  }
  const balance = async (): Promise<z.infer<typeof withBalance>> =>
    withBalance.parse(await api("GET", `/v1/projects/${projectId}/balance`));
  async function give(amountNanoDollars: number): Promise<void> {
    await server.asOperator((admin) => admin.addCredits({ projectId, amountNanoDollars, note: "" }));
    given += amountNanoDollars;
  }
  /** Callers that are told to try again do. */
  async function run(call: DrillCall): Promise<void> {
    const key = call.poor ? keys.poor : keys.rich;
    for (let tries = 0; tries < TRIES; tries++) {
      const result = await makeCall(server.modelsUrl, key, call);
      results.push(result);
      if (refusalOf(result)?.code !== "held_by_running_calls") return;
      await sleep(50 + 100 * random());
    }
  }
  async function untilRefused(call: DrillCall): Promise<string> {
    for (;;) {
      const result = await makeCall(server.modelsUrl, call.poor ? keys.poor : keys.rich, call);
      results.push(result);
      const refusal = refusalOf(result);
      if (refusal !== null) return refusal.code;
      if (!result.delivered) throw new Error(`${result.status}: ${result.text}`);
    }
  }
  /** What a second call gets while the first holds all that its key may spend. */
  async function refusedBesideAnother(): Promise<string | undefined> {
    const silent = makeCall(server.modelsUrl, keys.single, { ...ANY_CALL, deed: "stay silent" });
    await waitFor("the hold of a silent call", SOON_MS, async () => (await balance()).runningCalls === 1);
    const beside = await makeCall(server.modelsUrl, keys.single, ANY_CALL);
    results.push(await silent, beside);
    return refusalOf(beside)?.code;
  }
  async function charges(): Promise<{ readonly byCall: ReadonlyMap<string, number>; readonly entries: LedgerEntry[] }> {
    const entries = [...(await ledger.list(projectId, { after: null, limit: 100_000 }))];
    const settled = entries.filter(({ kind }) => kind === "settle");
    return { entries, byCall: new Map(settled.map(({ callId, amount }) => [callId ?? "", -amount])) };
  }

  test(`is exact to the nano-dollar, whatever happens (seed ${TEST_SEED})`, { timeout: 240_000 }, async () => {
    await give(50 * HOLD);
    // Made before any runs: what happens must not change what is asked.
    const [atOnce, afterwards] = [randomCalls(200, random), randomCalls(40, random)];
    const first = atOnce.map(run);
    await waitFor(
      "a good part of the answers",
      SOON_MS,
      async () => results.filter(({ delivered }) => delivered).length >= 25,
    );
    const confirmed = results.filter(({ delivered }) => delivered);
    await waitFor("what they cost", SOON_MS, async () => {
      const { byCall } = await charges();
      return confirmed.every(({ requestId }) => byCall.has(requestId ?? ""));
    });
    await server.kill();
    await Promise.all(first);
    const lost = new Set(results.filter((result) => !confirmed.includes(result)));

    server = await StartedServer.start(settings());
    expect((await balance()).heldNanoDollars).toBe(0);
    expect(await ledger.lostHolds(["inc_none"], 1)).toEqual([]);
    await give(25 * HOLD);
    const second = afterwards.map((call) => ({ ...call, leaves: call.leaves || call.deed === "endless" }));
    await Promise.all(second.map(run));
    await waitFor("the last calls", SOON_MS, async () => (await balance()).runningCalls === 0);

    await give(10 * HOLD);
    expect(await refusedBesideAnother()).toBe("held_by_running_calls");
    expect(await untilRefused({ ...ANY_CALL, poor: true, tokens: 200 })).toBe("key_budget_exceeded");
    await give(-(await balance()).balanceNanoDollars);
    expect(await untilRefused(ANY_CALL)).toBe("insufficient_balance");
    expect(await server.asOperator((admin) => admin.checkLedger())).toMatchObject({ projects: 1, wrong: [] });
    await server.remove();

    expect(await new LedgerCheck(store.db).run()).toMatchObject({ projects: 1, wrong: [] });
    expect(await ledger.lostHolds(["inc_none"], 1)).toEqual([]);
    const { byCall, entries } = await charges();
    const charged = [...byCall.values()].reduce((sum, cost) => sum + cost, 0);
    const writtenOff = entries.filter(({ kind, callId }) => kind === "adjust" && callId !== null);
    expect(writtenOff).toEqual([]);
    expect(given - charged).toBe(0);
    expect(await ledger.balance(projectId)).toBe(0);
    judge(results, { byCall, lost });
    const poor = entries.filter(({ spenderId, kind }) => spenderId === keys.poorId && kind === "settle");
    expect(poor.reduce((sum, { amount }) => sum - amount, 0)).toBeLessThanOrEqual(POOR_BUDGET);
  });
});

const PROVIDER = { models: [MODEL], timeouts: { firstByteSeconds: 2 } };
const ANY_CALL: DrillCall = {
  dialect: "chat",
  model: "both/m",
  stream: false,
  deed: "answer",
  tokens: 1,
  leaves: false,
  poor: false,
};

/** Whether each caller was charged what it got. @param lost those that the crash may have cut off. */
function judge(
  results: readonly DrillResult[],
  { byCall, lost }: { readonly byCall: ReadonlyMap<string, number>; readonly lost: ReadonlySet<DrillResult> },
): void {
  const heads = new Set(results.map(({ requestId }) => requestId));
  const unseen = [...byCall.keys()].filter((id) => !heads.has(id));
  // A caller that left or was cut off before it had its answer's head.
  expect(unseen.length).toBeLessThanOrEqual(results.filter(({ requestId }) => requestId === null).length);
  for (const result of results) {
    const cost = byCall.get(result.requestId ?? "") ?? 0;
    const { deed, tokens } = result.call;
    const counted = { inputTokens: INPUT_TOKENS, cachedInputTokens: CACHED_TOKENS, outputTokens: tokens };
    const full = costOf(counted, PRICES);
    if (result.delivered && !lost.has(result)) expect({ deed, cost }).toEqual({ deed, cost: full });
    else if (result.status !== null && result.status >= 400) expect({ deed, cost }).toEqual({ deed, cost: 0 });
    // An estimate of what came, or what a stream had surely brought when the server was killed.
    else expect({ deed, cost }).toSatisfy((charge: { cost: number }) => charge.cost <= 2 * full + HOLD);
    expectRightRefusal(result);
  }
}

/** Each refusal says what is missing, and whether it is worth trying again. */
function expectRightRefusal(result: DrillResult): void {
  const refusal = refusalOf(result);
  if (refusal === null) return;
  const { code, money } = refusal;
  const { neededNanoDollars: needed, leftNanoDollars: left, heldNanoDollars: held } = money;
  expect(left).toBeGreaterThanOrEqual(0);
  expect(needed).toBeGreaterThan(left);
  const retried = code === "held_by_running_calls";
  expect({ code, enough: left + held >= needed }).toEqual({ code, enough: retried });
  expect(result.headers?.get("retry-after") ?? null).toBe(retried ? "1" : null);
  expect(result.headers?.get("x-should-retry") ?? null).toBe(retried ? null : "false");
}
