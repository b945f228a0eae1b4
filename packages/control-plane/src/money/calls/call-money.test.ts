import { once } from "node:events";
import type { AddressInfo } from "node:net";
import type { Dialect } from "@fairlead/dialects/calls/dialect";
import { DIALECT_SPECS } from "@fairlead/dialects/dialect-specs";
import type { CallEnd } from "@fairlead/inference/calls/inference-call";
import type { Candidate, ModelCatalog } from "@fairlead/inference/calls/model-catalog";
import { createInferenceHost, type InferenceHost } from "@fairlead/inference/host/inference-host";
import type { Prices } from "@fairlead/inference/ports/prices";
import { asKey } from "@fairlead/inference/testing/callers";
import type { UpstreamHandler } from "@fairlead/inference/upstreams/upstream";
import { DomainError, type MoneyState } from "@fairlead/protocol/errors";
import { NO_LIMITS } from "@fairlead/protocol/key-limits";
import { rfc3339, systemClock } from "@fairlead/protocol/values/clock";
import { systemIds } from "@fairlead/protocol/values/ids";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { aloneOn } from "../../installation/cluster/membership.ts";
import type { OpenedDatabase } from "../../installation/db/open.ts";
import { BoundCounters } from "../../telemetry/bounds/bound-counters.ts";
import { openMemoryStore } from "../../testing.fixture.ts";
import { BillingService } from "../billing/billing-service.ts";
import { BillingStore } from "../billing/billing-store.ts";
import { type Budget, resetsAt } from "../billing/budget.ts";
import { STREAM_STEP_TOKENS } from "../billing/hold.ts";

const PROJECT = "prj_1";
/** A nano-dollar a token. */
const PRICES: Prices = { input: 1_000_000, output: 1_000_000, perRequest: 0 };

const chunk = (content: string): string =>
  `data: ${JSON.stringify({ object: "chat.completion.chunk", choices: [{ index: 0, delta: { content } }] })}\n\n`;
const usage = (input: number, output: number): object => ({ prompt_tokens: input, completion_tokens: output });

/** Real billing under the real inference host, in front of an upstream that does what a test says. */
describe("the cost of a call", () => {
  let store: OpenedDatabase;
  let billing: BillingService;
  let host: InferenceHost;
  let prices: Prices | null;
  let budget: Budget;
  let places: readonly Partial<Candidate>[];
  let script: (handler: UpstreamHandler) => void;
  let aborted: number;
  let ends: CallEnd[];

  const catalog: ModelCatalog = {
    resolve: async (_projectId, name) => ({ name, candidates: places.map(candidate) }),
    defaultModel: async () => null,
    list: async () => [],
    entry: async () => {
      throw new DomainError("model_not_found", "none");
    },
  };
  const candidate = (place: Partial<Candidate>): Candidate => ({
    key: "one",
    upstreamId: "one",
    kind: "provider",
    rank: 0,
    model: "m",
    protocols: ["chat", "responses"],
    forwardHeaders: [],
    contextTokens: null,
    maxOutputTokens: 4096,
    prices,
    open: () => ({
      dispatch: (_request, handler) => {
        setImmediate(() => script(handler));
        return { resume: () => undefined, abort: () => void aborted++ };
      },
    }),
    ...place,
  });

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
    prices = PRICES;
    places = [{}];
    budget = NO_LIMITS.budget;
    aborted = 0;
    ends = [];
    host = createInferenceHost({
      ...ports,
      billing,
      callers: { authenticate: async () => ({ ...asKey(PROJECT), limits: { ...NO_LIMITS, budget } }) },
      models: catalog,
      onEnded: (end) => void ends.push(end),
    });
    host.server.listen(0, "127.0.0.1");
    await once(host.server, "listening");
    await credit(10_000);
  });
  afterEach(async () => {
    await host.drain(0);
    await billing.close();
    await store.close();
  });

  async function credit(amount: number): Promise<void> {
    const change = { projectId: PROJECT, kind: "credit", amount, note: "" } as const;
    await billing.change(change, (write) => store.db.transaction().execute(write));
  }
  const ask = (body: object, signal?: AbortSignal, dialect: Dialect = "chat"): Promise<Response> =>
    fetch(`http://127.0.0.1:${(host.server.address() as AddressInfo).port}/v1${DIALECT_SPECS[dialect].path}`, {
      method: "POST",
      headers: { authorization: "Bearer flk_x", "content-type": "application/json" },
      body: JSON.stringify({ model: "one/m", [dialect === "chat" ? "messages" : "input"]: [], ...body }),
      ...(signal ? { signal } : {}),
    });
  /** Once nothing runs any more: what is left, which must be what the ledger says. */
  async function left(): Promise<number> {
    const account = await billing.account(PROJECT);
    while (account.running > 0) await new Promise(setImmediate);
    await billing.flush();
    const rows = new BillingStore(store.db);
    expect(await rows.ledgerSum(PROJECT)).toBe(account.balance);
    expect(await rows.lostHolds(["inc_none"], 10)).toEqual([]);
    return account.balance;
  }
  const answer = (handler: UpstreamHandler, body: object, status = 200): void => {
    handler.onHeaders(status, { "content-type": "application/json" });
    handler.onData(Buffer.from(JSON.stringify(body)));
    handler.onEnd();
  };
  const stream = (handler: UpstreamHandler, ...events: readonly string[]): void => {
    handler.onHeaders(200, { "content-type": "text/event-stream" });
    for (const event of events) handler.onData(Buffer.from(event));
  };

  test("is what the upstream's usage amounts to", async () => {
    script = (handler) => answer(handler, { choices: [], usage: usage(30, 12) });
    expect((await ask({ max_tokens: 100 })).status).toBe(200);
    expect(await left()).toBe(10_000 - 42);
    expect(ends).toMatchObject([{ outcome: "ok", cost: 42, estimated: false }]);
  });

  test("of a stream is what its last event reports, whether or not the caller requested usage", async () => {
    script = (handler) => {
      stream(
        handler,
        chunk("a"),
        `data: ${JSON.stringify({ choices: [], usage: usage(5, 7) })}\n\n`,
        "data: [DONE]\n\n",
      );
      handler.onEnd();
    };
    expect(await (await ask({ stream: true })).text()).not.toContain("usage");
    expect(await left()).toBe(10_000 - 12);
  });

  test("is zero if the upstream rejects it, fails, or is never reached", async () => {
    script = (handler) => answer(handler, { error: { message: "no" } }, 400);
    expect((await ask({})).status).toBe(400);
    script = (handler) => handler.onError(new DomainError("upstream_failed", "broke off"));
    expect((await ask({})).status).toBe(502);
    expect(await left()).toBe(10_000);
    expect(ends.map(({ cost }) => cost)).toEqual([0, 0]);
  });

  test("is estimated from what arrived if the upstream breaks off before it reports usage", async () => {
    script = (handler) => {
      stream(handler, chunk("some words that were generated"));
      handler.onError(new DomainError("upstream_failed", "broke off"));
    };
    expect(await (await ask({ stream: true })).text()).toContain("upstream_failed");
    const balance = await left();
    expect(balance).toBeLessThan(10_000);
    expect(ends).toMatchObject([{ outcome: "upstream_failed", estimated: true, cost: 10_000 - balance }]);
  });

  test("is zero if the caller disconnects before anything arrives, and is for what arrived if later", async () => {
    script = () => undefined;
    const early = new AbortController();
    const waiting = ask({ stream: true }, early.signal);
    while ((await billing.account(PROJECT)).running === 0) await new Promise(setImmediate);
    early.abort();
    await expect(waiting).rejects.toThrow();
    expect(await left()).toBe(10_000);
    script = (handler) => stream(handler, chunk("some words that were generated"));
    const late = new AbortController();
    const running = await ask({ stream: true }, late.signal);
    await running.body?.getReader().read();
    late.abort();
    expect(await left()).toBeLessThan(10_000);
    expect(aborted).toBe(2);
  });

  test("that exceeds the balance rejects it before any upstream call, saying what is needed and left", async () => {
    places = [{ maxOutputTokens: 1_000_000 }];
    script = () => {
      throw new Error("nobody may be asked");
    };
    const refused = await ask({ max_tokens: 1_000_000 });
    expect(refused.status).toBe(402);
    expect(refused.headers.get("x-should-retry")).toBe("false");
    expect(await refused.json()).toMatchObject({
      error: {
        code: "insufficient_balance",
        type: "billing_error",
        message: expect.stringMatching(/needs up to .* left/) as string,
      },
    });
    expect(await left()).toBe(10_000);
  });

  test("that exhausts the balance in the middle of a stream ends it in-band and stops the upstream", async () => {
    const words = "x".repeat(4 * STREAM_STEP_TOKENS);
    script = (handler) => stream(handler, ...Array.from({ length: 40 }, () => chunk(words)));
    const text = await (await ask({ stream: true, max_tokens: 1_000_000 })).text();
    expect(text).toContain('"code":"insufficient_balance"');
    expect(text).not.toContain("[DONE]");
    expect(aborted).toBe(1);
    expect(await left()).toBeGreaterThanOrEqual(0);
    expect(ends).toMatchObject([{ outcome: "insufficient_balance", estimated: true }]);
  });

  test("must be known: a model without a price is rejected", async () => {
    prices = null;
    script = (handler) => answer(handler, {});
    const refused = await ask({});
    expect(refused.status).toBe(503);
    expect(await refused.json()).toMatchObject({ error: { code: "not_configured" } });
  });

  test("is held for all requested choices, and for no longer ones than the model generates", async () => {
    places = [{ maxOutputTokens: 300 }];
    script = (handler) => answer(handler, { choices: [], usage: usage(30, 12) });
    expect((await ask({ max_tokens: 1_000_000 })).status).toBe(200);
    expect((await ask({ max_tokens: 1_000_000, n: 40 })).status).toBe(402);
    expect((await ask({ n: 40 })).status).toBe(402);
    expect((await ask({ max_tokens: 100, n: 40 })).status).toBe(200);
    expect(await left()).toBe(10_000 - 2 * 42);
  });

  test("was held in full without a stream, so the response's size in bytes is no reason to reject it", async () => {
    await credit(-10_000 + 400);
    script = (handler) => answer(handler, { padding: "x".repeat(4000), usage: usage(10, 5) });
    expect((await ask({ max_tokens: 5 })).status).toBe(200);
    expect(await left()).toBe(385);
  });

  test("is held before text is delivered: one large chunk of a stream delivers nothing unpaid", async () => {
    await credit(-10_000 + 1000);
    const words = "x".repeat(4 * STREAM_STEP_TOKENS);
    script = (handler) => stream(handler, Array.from({ length: 20 }, () => chunk(words)).join(""));
    const refused = await ask({ stream: true });
    expect(refused.status).toBe(402);
    expect(await refused.json()).toMatchObject({ error: { code: "insufficient_balance" } });
    expect(aborted).toBe(1);
    await left();
  });

  test("has the prices of the model that responded, even within one provider, and the hold the highest", async () => {
    const dear: Prices = { input: 3_000_000, cachedInput: 9_000_000, output: 3_000_000, perRequest: 5 };
    places = [{ model: "cheap" }, { model: "dear", rank: 1, prices: dear }];
    script = (handler) => answer(handler, { choices: [], usage: usage(30, 12) });
    expect((await ask({ max_tokens: 100 })).status).toBe(200);
    expect(await left()).toBe(10_000 - 42);
    script = (handler) => {
      script = (next) => answer(next, { choices: [], usage: usage(30, 12) });
      handler.onHeaders(500, {});
    };
    expect((await ask({ max_tokens: 100 })).status).toBe(200);
    expect(await left()).toBe(10_000 - 42 - 131);
    expect((await ask({ max_tokens: 3300 })).status).toBe(402);
  });

  test("has the prices from when the call began", async () => {
    script = (handler) => {
      prices = { input: 1_000_000_000, output: 1_000_000_000, perRequest: 0 };
      answer(handler, { choices: [], usage: usage(30, 12) });
    };
    expect((await ask({ max_tokens: 100 })).status).toBe(200);
    expect(await left()).toBe(10_000 - 42);
  });

  test("that exhausts the balance in a converted stream is reported in the caller's dialect", async () => {
    places = [{ protocols: ["chat"] }];
    await credit(-10_000 + 1000);
    const pieces = Array.from({ length: 20 }, () => chunk("x".repeat(200)));
    script = (handler) => stream(handler, ...pieces);
    const text = await (await ask({ stream: true, input: "Hi" }, undefined, "responses")).text();
    expect(text).toContain("event: response.failed");
    expect(text).toContain('"code":"insufficient_balance"');
    expect(text).not.toContain("response.completed");
    expect(aborted).toBe(1);
    expect(await left()).toBeGreaterThanOrEqual(0);
  });

  test("is zero for a rejection, whatever usage it reports", async () => {
    script = (handler) => answer(handler, { error: { message: "no" }, usage: usage(30, 12) }, 400);
    expect((await ask({})).status).toBe(400);
    expect(await left()).toBe(10_000);
  });

  describe.each(["chat", "responses"] as const)("that is rejected in the %s dialect:", (dialect) => {
    const NEVER = { resetsAt: null };
    /** One event of a stream that goes on. */
    const words = (length: number): string =>
      dialect === "chat"
        ? chunk("x".repeat(length))
        : `data: ${JSON.stringify({ type: "response.output_text.delta", delta: "x".repeat(length) })}\n\n`;
    const refused = async (body: object): Promise<{ readonly headers: Headers; readonly error: unknown }> => {
      const response = await ask(body, undefined, dialect);
      expect(response.status).toBe(402);
      return { headers: response.headers, error: ((await response.json()) as { error: unknown }).error };
    };
    /** Sets something aside, and stays. */
    const hold = async (tokens: number): Promise<void> => {
      const { running } = await billing.account(PROJECT);
      script = () => undefined;
      void ask({ [dialect === "chat" ? "max_tokens" : "max_output_tokens"]: tokens }, undefined, dialect).catch(
        () => undefined,
      );
      while ((await billing.account(PROJECT)).running === running) await new Promise(setImmediate);
    };

    test.each([false, true])("insufficient_balance says what is needed and left (stream: %s)", async (stream) => {
      await credit(-9_990);
      const { headers, error } = await refused({ stream });
      expect(headers.get("x-should-retry")).toBe("false");
      expect(headers.get("retry-after")).toBeNull();
      expect(error).toMatchObject({
        code: "insufficient_balance",
        message: expect.stringMatching(/needs up to \$.* has \$0\.00000001 left\. .* does not reset\.$/) as string,
        money: { ...NEVER, leftNanoDollars: 10, heldNanoDollars: 0 },
      });
    });

    test.each([false, true])("held_by_running_calls may be retried (stream: %s)", async (stream) => {
      places = [{ maxOutputTokens: 9_600 }];
      await hold(9_600);
      const { headers, error } = await refused({ stream });
      expect(headers.get("x-should-retry")).toBeNull();
      expect(headers.get("retry-after")).toBe("1");
      expect(error).toMatchObject({ code: "held_by_running_calls", money: { ...NEVER } });
      const { money } = error as { money: MoneyState };
      expect(money.leftNanoDollars).toBeLessThan(money.neededNanoDollars);
      expect(money.leftNanoDollars + money.heldNanoDollars).toBe(10_000);
    });

    test.each([false, true])("key_budget_exceeded says when the budget resets (stream: %s)", async (stream) => {
      budget = { total: 9_000, daily: 20, monthly: 9_000 };
      const { headers, error } = await refused({ stream });
      expect(headers.get("x-should-retry")).toBe("false");
      const tomorrow = resetsAt("daily", Date.now());
      expect(error).toMatchObject({
        code: "key_budget_exceeded",
        message: expect.stringContaining("It resets at") as string,
        money: { leftNanoDollars: 20, heldNanoDollars: 0, resetsAt: rfc3339(tomorrow ?? 0) },
      });
    });

    test("a rejection in the middle of a stream is reported in-band, with the same amounts", async () => {
      budget = { total: 1000, daily: null, monthly: null };
      const pieces = Array.from({ length: 40 }, () => words(200));
      script = (handler) => {
        handler.onHeaders(200, { "content-type": "text/event-stream" });
        for (const piece of pieces) handler.onData(Buffer.from(piece));
      };
      const text = await (await ask({ stream: true }, undefined, dialect)).text();
      expect(text).toContain('"code":"key_budget_exceeded"');
      expect(text).toMatch(
        /"money":\{"neededNanoDollars":\d+,"leftNanoDollars":\d+,"heldNanoDollars":0,"resetsAt":null\}/,
      );
      expect(text).toContain(dialect === "chat" ? "data: {" : "event: response.failed");
      expect(text).not.toContain("[DONE]");
      expect(aborted).toBe(1);
      expect(await left()).toBeGreaterThanOrEqual(9_000);
    });
  });

  test("is exact to the nano-dollar for two hundred simultaneous calls on a balance for fifty", async () => {
    await credit(-10_000 + 50 * 120);
    script = (handler) => answer(handler, { choices: [], usage: usage(3, 100) });
    const statuses = await Promise.all(
      Array.from({ length: 200 }, async () => {
        const { status, body } = await ask({ max_tokens: 110 });
        await body?.cancel();
        return status;
      }),
    );
    const served = statuses.filter((status) => status === 200).length;
    expect(new Set(statuses)).toEqual(new Set([200, 402]));
    expect(await left()).toBe(50 * 120 - served * 103);
  });
});
