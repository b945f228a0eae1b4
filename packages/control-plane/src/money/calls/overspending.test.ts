import type { Candidate } from "@fairlead/inference/calls/model-catalog";
import { HostStage } from "@fairlead/inference/host/host-stage.fixture";
import type { Prices } from "@fairlead/inference/ports/prices";
import { chunk, DONE, JSON_TYPE, SSE } from "@fairlead/inference/relay/call-relay.fixture";
import { asAgent, asKey } from "@fairlead/inference/testing/callers";
import type { ScriptedCall } from "@fairlead/inference/testing/scripted-upstream";
import { systemClock } from "@fairlead/protocol/values/clock";
import { systemIds } from "@fairlead/protocol/values/ids";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { callLimiter } from "../../access/limits/call-limiter.ts";
import { type CallLimits, NO_CALL_LIMITS } from "../../access/limits/call-limits.ts";
import { Limiter } from "../../access/limits/limiter.ts";
import { aloneOn } from "../../installation/cluster/membership.ts";
import type { OpenedDatabase } from "../../installation/db/open.ts";
import { BoundCounters } from "../../telemetry/bounds/bound-counters.ts";
import { openMemoryStore } from "../../testing.fixture.ts";
import { BillingService } from "../billing/billing-service.ts";

/**
 * Callers that try to spend more than they have, by many calls at once at an upstream that reads their bodies strictly: a token for each
 * byte of a text, and numbers in whatever form they come.
 */

const PROJECT = "prj_1";
/** $3 and $15 for a million tokens. */
const PRICES: Prices = { input: 3_000_000_000, output: 15_000_000_000, perRequest: 0 };
const BUDGET = 100_000_000;
const AT_ONCE = 30;
const WORDS_LIKE_BASE64 = "word ".repeat(160_000) + "a".repeat(5000);

let store: OpenedDatabase;
let billing: BillingService;
let stage: HostStage;
let project: CallLimits;
let arrived: ScriptedCall[];

beforeEach(async () => {
  store = await openMemoryStore();
  const ports = { clock: systemClock, ids: systemIds(() => Date.now()), log: pino({ level: "silent" }) };
  billing = new BillingService({
    ...ports,
    bounds: new BoundCounters(),
    membership: aloneOn("inc_1"),
    ...store,
    mode: "prepaid",
  });
  stage = new HostStage();
  project = NO_CALL_LIMITS;
  arrived = [];
  const limiter = callLimiter(new Limiter(stage.clock), { effective: () => project });
  await stage.open({ billing, limiter });
});
afterEach(async () => {
  await stage.close();
  await billing.close();
  await store.close();
});

const place = (change: Partial<Candidate> = {}): void => {
  stage.place("strict", (far) => void arrived.push(far), { prices: PRICES, maxOutputTokens: 1000, ...change });
};

async function credit(amount: number): Promise<void> {
  const change = { projectId: PROJECT, kind: "credit", amount, note: "" } as const;
  await billing.change(change, (write) => store.db.transaction().execute(write));
}

/** As many as arrive, once all others are refused. @param answer what the upstream does with each. */
async function allAtOnce(body: object, answer: (far: ScriptedCall) => Promise<void>): Promise<Response[]> {
  let refused = 0;
  const calls = Array.from({ length: AT_ONCE }, async () => {
    const response = await stage.chat(body);
    if (response.status >= 400) refused++;
    return response;
  });
  await vi.waitFor(() => expect(arrived.length + refused).toBe(AT_ONCE), { timeout: 15_000 });
  for (const far of arrived) await answer(far);
  const responses = await Promise.all(calls);
  await Promise.all(responses.map((response) => response.text().catch(() => "")));
  return responses;
}

function bytesOf(value: unknown): number {
  if (typeof value === "string") return Buffer.byteLength(value);
  if (typeof value !== "object" || value === null) return 0;
  return Object.values(value).reduce((sum: number, part: unknown) => sum + bytesOf(part), 0);
}

/** The most that a lenient server would read. */
const numberOf = (value: unknown, otherwise: number): number => {
  const number = typeof value === "string" ? Number(value) : value;
  return typeof number === "number" && Number.isFinite(number) && number > 0 ? number : otherwise;
};

async function countStrictly(far: ScriptedCall): Promise<void> {
  const body = JSON.parse((await far.request).body.toString()) as Record<string, unknown>;
  const output = numberOf(body["n"], 1) * Math.min(1000, numberOf(body["max_tokens"], 1000));
  far.respond(200, JSON_TYPE);
  far.write(JSON.stringify({ choices: [], usage: { prompt_tokens: bytesOf(body), completion_tokens: output } }));
  far.end();
}

async function spentBy(id: string): Promise<number> {
  await vi.waitFor(async () => expect((await billing.account(PROJECT)).running).toBe(0));
  return (await billing.spenderAccount(id)).spent("total");
}

const ask = (content: unknown, rest: object = {}): object => ({
  model: "any/model",
  messages: [{ role: "user", content }],
  ...rest,
});

describe.each([
  ["a key's budget", "key_1", asKey(PROJECT, { budget: { total: BUDGET, daily: null, monthly: null } })],
  ["an agent's budget", "agt_1", asAgent(PROJECT, { budget: { total: BUDGET, daily: null, monthly: null } })],
] as const)("%s cannot be overspent", (_name, id, caller) => {
  beforeEach(async () => {
    stage.caller = caller;
    await credit(100_000_000_000);
  });

  test.each<[string, object, boolean]>([
    ["by words that end like base64", ask(WORDS_LIKE_BASE64, { max_tokens: 1 }), false],
    ["by one letter repeated many times", ask([{ type: "text", text: "a".repeat(30_000) }], { max_tokens: 1 }), true],
    ["by digits", ask("7 ".repeat(5000), { max_tokens: 1 }), true],
    ["by images in a tool", ask("Hi", { max_tokens: 1, tools: [{ image_url: { url: "a".repeat(20_000) } }] }), true],
    ["by many choices, sent as text", ask("Hi", { max_tokens: 100, n: "20" }), true],
    ["by many choices, sent as a fraction", ask("Hi", { max_tokens: 100, n: 20.5 }), true],
    ["by an invalid limit", ask("Hi", { max_tokens: -1 }), true],
    ["by a limit sent as text", ask("Hi", { max_tokens: "900" }), true],
    ["by a limit of the other dialect", ask("Hi", { max_output_tokens: 1 }), true],
    ["by a limit that the upstream does not read", ask("Hi", { max_completion_tokens: 1 }), true],
  ])("%s", async (_how, body, someAreServed) => {
    place();
    const responses = await allAtOnce(body, countStrictly);
    const spent = await spentBy(id);
    expect(spent).toBeLessThanOrEqual(BUDGET);
    expect(spent > 0).toBe(someAreServed);
    expect(responses.filter(({ status }) => status === 402).length).toBeGreaterThan(0);
  });

  test("by calls whose upstream reports no usage and sends a long response", async () => {
    place();
    await allAtOnce(ask("Hi", { max_tokens: 100, logprobs: true }), async (far) => {
      far.respond(200, JSON_TYPE);
      far.write(JSON.stringify({ choices: [], padding: "x".repeat(100_000) }));
      far.end();
    });
    const spent = await spentBy(id);
    expect(spent).toBeGreaterThan(0);
    expect(spent).toBeLessThanOrEqual(BUDGET);
  });

  test("by streams that deliver more than is left in one chunk", async () => {
    place();
    await allAtOnce(ask("Hi", { stream: true, max_tokens: 1000 }), async (far) => {
      far.respond(200, SSE);
      far.write(chunk("Hi"));
      far.write(Array.from({ length: 40 }, () => chunk("x".repeat(1500))).join(""));
      far.write(DONE);
      far.end();
    });
    const spent = await spentBy(id);
    expect(spent).toBeGreaterThan(0);
    expect(spent).toBeLessThanOrEqual(BUDGET);
  });
});

test("a balance is never overspent, and nothing is written off", async () => {
  await credit(BUDGET);
  place();
  const responses = await allAtOnce(ask("7".repeat(2000), { max_tokens: 100, n: "3" }), countStrictly);
  await vi.waitFor(async () => expect((await billing.account(PROJECT)).running).toBe(0));
  await billing.flush();
  const rows = await store.db.selectFrom("ledger_entry").select(["kind", "amount"]).execute();
  expect(rows.filter(({ kind }) => kind === "adjust")).toEqual([]);
  expect((await billing.account(PROJECT)).balance).toBeGreaterThanOrEqual(0);
  const served = responses.filter(({ status }) => status === 200).length;
  expect(served).toBeGreaterThan(0);
  expect(served).toBeLessThan(AT_ONCE);
});

test("one honest call needs no more balance than for what the model can read", async () => {
  await credit(BUDGET);
  place({ contextTokens: 16_384 });
  const arriving = stage.chat(ask("word ".repeat(12_000), { max_tokens: 100 }));
  await vi.waitFor(() => expect(arrived).toHaveLength(1));
  const [far] = arrived;
  far?.respond(200, JSON_TYPE);
  far?.write(JSON.stringify({ choices: [], usage: { prompt_tokens: 12_000, completion_tokens: 20 } }));
  far?.end();
  expect((await arriving).status).toBe(200);
});

describe("with a limit on tokens per minute,", () => {
  const TOKENS = 20_000;
  beforeEach(async () => {
    await credit(1_000_000_000_000);
    project = { ...NO_CALL_LIMITS, tokensPerMinute: TOKENS };
    place({ maxOutputTokens: 15_000 });
  });

  test.each<[string, object]>([
    ["long responses", ask("Hi", { max_tokens: 15_000 })],
    ["responses without a limit", ask("Hi")],
    ["many choices", ask("Hi", { max_tokens: 500, n: "30" })],
    ["input of many tokens", ask("7".repeat(15_000), { max_tokens: 1 })],
  ])("a single call can exceed what remains, but not several at the same time: %s", async (_name, body) => {
    const responses = await allAtOnce(body, countStrictly);
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(responses.filter(({ status }) => status === 429)).toHaveLength(AT_ONCE - 1);
    const refused = responses.find(({ status }) => status === 429);
    expect(refused?.headers.get("retry-after")).toMatch(/^[1-9]/);
  });

  test("consecutive calls use no more of it than they need", async () => {
    for (let made = 1; made <= 5; made++) {
      const arriving = stage.chat(ask("Hi", { max_tokens: 15_000 }));
      await vi.waitFor(() => expect(arrived).toHaveLength(made));
      const far = arrived.at(-1);
      far?.respond(200, JSON_TYPE);
      far?.write(JSON.stringify({ choices: [], usage: { prompt_tokens: 10, completion_tokens: 100 } }));
      far?.end();
      const response = await arriving;
      expect(response.status).toBe(200);
      await response.text();
    }
  });
});
