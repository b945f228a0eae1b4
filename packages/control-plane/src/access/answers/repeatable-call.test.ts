import { ANSWER, CHAT, HostStage } from "@fairlead/inference/host/host-stage.fixture";
import type { InferenceHostOptions } from "@fairlead/inference/host/inference-host";
import { MAX_ANSWER_BYTES } from "@fairlead/inference/ports/kept-answer";
import type { AnsweredCall } from "@fairlead/inference/ports/kept-answers";
import { JSON_TYPE } from "@fairlead/inference/relay/call-relay.fixture";
import { asKey } from "@fairlead/inference/testing/callers";
import type { ScriptedUpstream } from "@fairlead/inference/testing/scripted-upstream";
import type { FarEnd } from "@fairlead/inference/upstreams/upstream.contract";
import { systemIds } from "@fairlead/protocol/values/ids";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { aloneOn } from "../../installation/cluster/membership.ts";
import { BillingService } from "../../money/billing/billing-service.ts";
import { BoundCounters } from "../../telemetry/bounds/bound-counters.ts";
import { openMemoryStore } from "../../testing.fixture.ts";
import { memorySealer } from "../auth/sealing/memory-sealer.ts";
import { AnswerService } from "./answer-service.ts";
import type { AnswerRecord, AnswerStore } from "./answer-store.ts";

/** What the store does, in memory; it can be away. */
class MemoryAnswers implements Pick<AnswerStore, "find" | "put"> {
  readonly records = new Map<string, AnswerRecord>();
  away = false;
  find(call: AnsweredCall): Promise<AnswerRecord | null> {
    return Promise.resolve(this.records.get(nameOf(call)) ?? null);
  }

  put(call: AnsweredCall, record: AnswerRecord): Promise<void> {
    if (this.away) return Promise.reject(new Error("the store is away"));
    this.records.set(nameOf(call), record);
    return Promise.resolve();
  }
}

const nameOf = ({ projectId, callerId, key }: AnsweredCall): string => `${projectId} ${callerId} ${key}`;
const KEY = { headers: { "idempotency-key": "k 1" } };
let stage: HostStage;
let upstream: ScriptedUpstream;
let store: MemoryAnswers;
beforeEach(async () => {
  stage = new HostStage();
  store = new MemoryAnswers();
  await openStage();
  upstream = stage.place("box");
});

function openStage(options: Partial<InferenceHostOptions> = {}): Promise<void> {
  const answers = store as unknown as AnswerStore;
  const service = new AnswerService({ answers, writes: answers, sealer: memorySealer(), clock: stage.clock });
  return stage.open({ answers: service, ...options });
}

afterEach(() => stage.close());
function answer(far: FarEnd, body: object = ANSWER): void {
  far.respond(200, JSON_TYPE);
  far.write(JSON.stringify(body));
  far.end();
}

async function callAndAnswer(
  body: object = CHAT,
  init: { readonly headers: Record<string, string> } = KEY,
): Promise<Response> {
  const arrived = upstream.nextCall();
  const answered = stage.chat(body, init);
  answer(await arrived);
  return answered;
}

describe("a call with an Idempotency-Key", () => {
  test("is made once; a retry gets the same response, marked as a replay", async () => {
    const first = await callAndAnswer();
    const repeat = await stage.chat(CHAT, KEY);
    expect(await repeat.text()).toBe(await first.text());
    expect(repeat.status).toBe(200);
    expect(repeat.headers.get("content-type")).toBe("application/json");
    expect(repeat.headers.get("idempotency-replayed")).toBe("true");
    expect(first.headers.get("idempotency-replayed")).toBeNull();
    expect(repeat.headers.get("x-request-id")).not.toBe(first.headers.get("x-request-id"));
    expect(upstream.calls).toHaveLength(1);
    expect([...(stage.host?.counters.calls() ?? [])].map(({ outcome, count }) => [outcome, count])).toEqual([
      ["ok", 1],
      ["replayed", 1],
    ]);
    expect(stage.ends).toHaveLength(1);
  });

  test("is rejected if the key was used for a different call, or the first call is still running", async () => {
    const arrived = upstream.nextCall();
    const first = stage.chat(CHAT, KEY);
    const far = await arrived;
    const running = await stage.chat(CHAT, KEY);
    expect(running.status).toBe(409);
    expect(running.headers.get("retry-after")).toBe("2");
    expect(running.headers.get("x-should-retry")).toBeNull();
    expect(await running.json()).toMatchObject({ error: { code: "idempotency_in_progress" } });
    answer(far);
    await first;
    const other = await stage.chat({ ...CHAT, seed: 1 }, KEY);
    expect(other.status).toBe(409);
    expect(other.headers.get("x-should-retry")).toBe("false");
    expect(await other.json()).toMatchObject({ error: { code: "idempotency_mismatch", param: "Idempotency-Key" } });
  });

  test("is a new call with another project key, or without the header", async () => {
    await callAndAnswer();
    stage.caller = { ...asKey("prj_1"), keyId: "key_2" };
    await callAndAnswer();
    await callAndAnswer(CHAT, { headers: {} });
    expect(upstream.calls).toHaveLength(3);
  });

  test("can be retried after a failure: only successful responses are stored", async () => {
    for (const [status, body] of [
      [500, "{}"],
      [400, '{"error":{"message":"no"}}'],
    ] as const) {
      const arrived = upstream.nextCall();
      const failed = stage.chat(CHAT, KEY);
      const far = await arrived;
      far.respond(status, JSON_TYPE);
      far.write(body);
      far.end();
      expect((await failed).status).toBe(status >= 500 ? 502 : status);
    }
    const arrived = upstream.nextCall();
    const broken = stage.chat(CHAT, KEY);
    const far = await arrived;
    far.respond(200, JSON_TYPE);
    far.write('{"half":');
    far.cut();
    expect((await broken).status).toBe(502);
    expect((await callAndAnswer()).status).toBe(200);
    expect(store.records.size).toBe(1);
  });

  test("continues when its caller disconnects, so that a retry gets the response", async () => {
    const leaving = new AbortController();
    const arrived = upstream.nextCall();
    const first = stage.chat(CHAT, { ...KEY, signal: leaving.signal });
    const far = await arrived;
    far.respond(200, JSON_TYPE);
    leaving.abort();
    await expect(first).rejects.toThrow();
    far.write(JSON.stringify(ANSWER));
    far.end();
    await vi.waitFor(() => expect(stage.ends).toMatchObject([{ outcome: "ok" }]));
    expect(upstream.calls[0]?.closed).toBe(false);
    const repeat = await stage.chat(CHAT, KEY);
    expect(await repeat.json()).toEqual(ANSWER);
  });

  // Augustas11/macprovider#762, danny-avila/LibreChat#14344: the answer was lost, the message sent again, and both were charged.
  test("is charged once, however often it is sent", async () => {
    await stage.close();
    const database = await openMemoryStore();
    const ports = { clock: stage.clock, ids: systemIds(() => 0), log: pino({ level: "silent" }) };
    const billing = new BillingService({
      ...ports,
      bounds: new BoundCounters(),
      membership: aloneOn("inc_1"),
      ...database,
      mode: "prepaid",
    });
    const credit = { projectId: "prj_1", kind: "credit", amount: 10_000, note: "" } as const;
    await billing.change(credit, (write) => database.db.transaction().execute(write));
    await openStage({ billing });
    stage.candidates = [];
    upstream = stage.place("priced", undefined, { prices: { input: 0, output: 0, perRequest: 7 } });
    await callAndAnswer();
    for (let repeat = 0; repeat < 3; repeat++) expect((await stage.chat(CHAT, KEY)).status).toBe(200);
    await vi.waitFor(async () => {
      expect(await billing.account("prj_1")).toMatchObject({ running: 0, balance: 10_000 - 7 });
    });
    expect(upstream.calls).toHaveLength(1);
    await billing.close();
    await database.close();
  });

  // Menci/Floway#447: whoever reads on for a caller that left may read for ever.
  test("has the usual time limit after its caller disconnects, and then frees its key", async () => {
    await stage.close();
    await openStage({ limits: { totalMs: 10_000, idleMs: 5000, sweepMs: 5 } });
    const leaving = new AbortController();
    const arrived = upstream.nextCall();
    const first = stage.chat(CHAT, { ...KEY, signal: leaving.signal });
    const far = await arrived;
    far.respond(200, JSON_TYPE);
    leaving.abort();
    await expect(first).rejects.toThrow();
    const nextSecond = (): void => {
      far.write(" ");
      stage.clock.advance(1000);
      expect(upstream.calls[0]?.closed).toBe(true);
    };
    await vi.waitFor(nextSecond, { timeout: 10_000 });
    await vi.waitFor(() => expect(stage.ends).toMatchObject([{ outcome: "upstream_timeout" }]));
    expect((await callAndAnswer()).status).toBe(200);
  });

  test("ends like any other when its upstream fails after its caller disconnects", async () => {
    const leaving = new AbortController();
    const arrived = upstream.nextCall();
    const first = stage.chat(CHAT, { ...KEY, signal: leaving.signal });
    const far = await arrived;
    leaving.abort();
    await expect(first).rejects.toThrow();
    far.cut();
    await vi.waitFor(() => expect(stage.ends).toMatchObject([{ outcome: "upstream_failed" }]));
    await vi.waitFor(() => expect(stage.host?.load.callsInFlight).toBe(0));
    expect((await callAndAnswer()).status).toBe(200);
  });

  test("gets its full response even if that is too long to store; a retry is rejected, not run again", async () => {
    const long = { ...ANSWER, text: "x".repeat(MAX_ANSWER_BYTES) };
    const arrived = upstream.nextCall();
    const first = stage.chat(CHAT, KEY);
    const far = await arrived;
    const text = JSON.stringify(long);
    far.respond(200, JSON_TYPE);
    for (let at = 0; at < text.length; at += 100_000) far.write(text.slice(at, at + 100_000));
    far.end();
    expect(await (await first).text()).toBe(text);
    const repeat = await stage.chat(CHAT, KEY);
    expect(repeat.status).toBe(409);
    expect(await repeat.json()).toMatchObject({ error: { code: "already_exists" } });
  });

  test("gets its response even if the store cannot save it", async () => {
    store.away = true;
    const first = await callAndAnswer();
    expect(first.status).toBe(200);
    expect(await first.json()).toEqual(ANSWER);
  });

  test.each([
    ["a stream", { ...CHAT, stream: true }, "k"],
    ["an invalid key", CHAT, "k".repeat(256)],
  ])("is rejected for %s", async (_name, body, key) => {
    const refused = await stage.chat(body, { headers: { "idempotency-key": key } });
    expect(refused.status).toBe(400);
    expect(await refused.json()).toMatchObject({ error: { code: "invalid_request", param: "Idempotency-Key" } });
    expect(upstream.calls).toHaveLength(0);
    // Its key is free.
    if (key === "k") expect((await callAndAnswer(CHAT, { headers: { "idempotency-key": key } })).status).toBe(200);
  });

  test("is ended by a server shutdown like any other", async () => {
    const arrived = upstream.nextCall();
    const running = stage.chat(CHAT, KEY);
    await arrived;
    await stage.close();
    expect((await running).status).toBe(503);
    expect(store.records.size).toBe(0);
  });
});
