import type { Dialect } from "@fairlead/dialects/calls/dialect";
import { Admission, type Ticket } from "@fairlead/hosting/requests/admission";
import { DomainError } from "@fairlead/protocol/errors";
import { TestClock } from "@fairlead/protocol/testing/test-clock";
import { beforeEach, describe, expect, test } from "vitest";
import { InferenceCounters } from "../host/inference-counters.ts";
import { DEFAULT_LIMITS } from "../host/limits.ts";
import { LiveCalls } from "../host/live-calls.ts";
import { NO_LIMITER } from "../ports/call-limiter.ts";
import { WHOLE as WHOLE_ANSWER } from "../relay/bridged.fixture.ts";
import { chunk, DONE, JSON_TYPE, PLACE, SSE } from "../relay/call-relay.fixture.ts";
import { UpstreamLeases } from "../routing/upstream-leases.ts";
import { asKey } from "../testing/callers.ts";
import { type ScriptedCall, ScriptedUpstream } from "../testing/scripted-upstream.ts";
import type { AnswerHead, AnswerSink, SinkListener } from "./answer-sink.ts";
import { NO_BILLING } from "./call-money.ts";
import type { CallEnd } from "./inference-call.ts";
import type { Candidate, ModelCatalog } from "./model-catalog.ts";
import { InferencePipeline, type RunningCall } from "./pipeline.ts";

/** A caller in this process: the pipeline knows of no other kind. */
class MemorySink implements AnswerSink {
  readonly readsEvents = false;
  readonly connection = null;
  head: AnswerHead | undefined;
  carried: Readonly<Record<string, string>> = {};
  text = "";
  error: DomainError | undefined;
  #listener: SinkListener | undefined;

  listen(listener: SinkListener): void {
    this.#listener = listener;
  }

  carry(headers: Readonly<Record<string, string>>): void {
    this.carried = headers;
  }

  begin(head: AnswerHead): void {
    this.head = head;
  }

  write(bytes: Buffer): boolean {
    this.text += bytes.toString();
    return true;
  }

  end(): void {
    this.#listener?.onClosed(true);
  }

  refuse(error: DomainError): void {
    this.error = error;
    this.#listener?.onClosed(true);
  }

  break(): void {
    this.#listener?.onClosed(false);
  }

  leave(): void {
    this.#listener?.onClosed(false);
  }
}

let clock: TestClock;
let upstream: ScriptedUpstream;
let ends: CallEnd[];
let live: LiveCalls;
let admission: Admission;
let ticket: Ticket;
let sink: MemorySink;
let defaultModel: string | null;
let candidates: readonly Candidate[];
let pipeline: InferencePipeline;

const candidate: Candidate = {
  ...PLACE,
  upstreamId: "node:box",
  kind: "node",
  model: "tiny",
  protocols: ["chat", "responses"],
  open: () => upstream,
};

const models: ModelCatalog = {
  resolve: (_project, name) =>
    name === "box/tiny"
      ? Promise.resolve({ name, candidates })
      : Promise.reject(new DomainError("model_not_found", "There is no such model.")),
  defaultModel: () => Promise.resolve(defaultModel),
  list: () => Promise.resolve([]),
  entry: () => Promise.reject(new DomainError("model_not_found", "There is no such model.")),
};

beforeEach(() => {
  clock = new TestClock();
  upstream = new ScriptedUpstream();
  ends = [];
  live = new LiveCalls(clock, 3_600_000);
  live.stop();
  admission = new Admission(
    { maxCallsInFlight: 10, maxBufferedBytes: 1_000_000, ownerShare: 1 },
    { reached: () => undefined },
  );
  ticket = admission.enter();
  sink = new MemorySink();
  defaultModel = null;
  candidates = [candidate];
  const counters = new InferenceCounters();
  const onEnded = (end: CallEnd): void => void ends.push(end);
  pipeline = new InferencePipeline({
    models,
    live,
    clock,
    limits: { ...DEFAULT_LIMITS, maxRetryWaitMs: 0 },
    counters,
    failures: { add: () => undefined },
    limiter: NO_LIMITER,
    billing: NO_BILLING,
    traces: null,
    places: new UpstreamLeases(clock),
    random: () => 0.5,
    onEnded,
  });
});

async function start(body: object, dialect: Dialect = "chat", caller = asKey("prj_1")): Promise<RunningCall> {
  const bytes = [Buffer.from(JSON.stringify(body))];
  ticket.holdBytes(bytes.reduce((sum, piece) => sum + piece.length, 0));
  const begunAt = clock.monotonic();
  return await pipeline.start(
    { id: "req_1", caller, dialect, body: bytes, headers: {}, ticket, begunAt, uploadMs: 0 },
    sink,
  );
}

function theCall(): ScriptedCall {
  const [call] = upstream.calls;
  if (call === undefined) throw new Error("not dispatched");
  return call;
}

/** The end of the only call, told once. */
async function endOf(running: RunningCall): Promise<CallEnd> {
  const end = await running.ended;
  expect(ends).toEqual([end]);
  return end;
}

const WHOLE = { model: "box/tiny", messages: [{ role: "user", content: "Hello there" }] };
const STREAM = { ...WHOLE, stream: true };
const USAGE = { prompt_tokens: 9, completion_tokens: 4, prompt_tokens_details: { cached_tokens: 8 } };
const TOLD = { inputTokens: 9, cachedInputTokens: 8, outputTokens: 4, reasoningTokens: 0 };

describe("the record of a finished call", () => {
  test("has the caller, the model, the outcome and the usage", async () => {
    const running = await start(WHOLE);
    clock.advance(30);
    theCall().respond(200, JSON_TYPE);
    theCall().write(JSON.stringify({ choices: [], usage: USAGE }));
    clock.advance(12);
    theCall().end();
    expect(await endOf(running)).toMatchObject({
      id: "req_1",
      caller: { projectId: "prj_1", keyId: "key_1" },
      dialect: "chat",
      outcome: "ok",
      status: 200,
      stream: false,
      model: "box/tiny",
      upstreamId: "node:box",
      usage: TOLD,
      estimated: false,
      firstTokenMs: null,
      durationMs: 42,
    });
  });

  test("has the time of a stream's first token, and usage that the caller does not see", async () => {
    const running = await start(STREAM);
    theCall().respond(200, SSE);
    clock.advance(25);
    theCall().write(chunk("Hi"));
    clock.advance(100);
    theCall().write(`data: ${JSON.stringify({ choices: [], usage: USAGE })}\n\n${DONE}`);
    theCall().end();
    expect(await endOf(running)).toMatchObject({
      outcome: "ok",
      usage: TOLD,
      estimated: false,
      firstTokenMs: 25,
      durationMs: 125,
    });
    expect(sink.text).toBe(chunk("Hi") + DONE);
  });

  test.each<[string, () => void, string]>([
    ["the caller disconnected", () => sink.leave(), "client_left"],
    ["the upstream broke off", () => theCall().cut(), "upstream_failed"],
    ["the host stopped it", () => live.failAll(new DomainError("unavailable", "Stopping.")), "unavailable"],
  ])("has usage marked as an estimate if a stream ended early: %s", async (_name, end, outcome) => {
    const running = await start(STREAM);
    theCall().respond(200, SSE);
    theCall().write(chunk("Hi") + chunk(" the") + chunk("re"));
    end();
    const told = await endOf(running);
    expect(told).toMatchObject({ outcome, estimated: true, usage: { outputTokens: 3, cachedInputTokens: 0 } });
    expect(told.usage?.inputTokens).toBe(Math.ceil(JSON.stringify(STREAM).length / 4));
  });

  test("has estimated usage if a non-streaming response reports none", async () => {
    const running = await start(WHOLE);
    theCall().respond(200, JSON_TYPE);
    theCall().write(`{"a":"${"x".repeat(392)}"}`);
    theCall().end();
    expect(await endOf(running)).toMatchObject({ outcome: "ok", estimated: true, usage: { outputTokens: 100 } });
  });

  test.each<[string, () => void, string]>([
    ["the caller disconnected before a token", () => sink.leave(), "client_left"],
    ["the upstream never responded", () => theCall().cut(), "upstream_failed"],
    [
      "the upstream rejected the call",
      () => {
        theCall().respond(400, JSON_TYPE);
        theCall().write('{"error":{"message":"x"}}');
        theCall().end();
      },
      "rejected",
    ],
    [
      "the upstream reported an error with status 200",
      () => {
        theCall().respond(200, JSON_TYPE);
        theCall().write(JSON.stringify({ error: { message: "x".repeat(1000) } }));
        theCall().end();
      },
      "upstream_failed",
    ],
    [
      "the response had only comments",
      () => {
        theCall().respond(200, SSE);
        theCall().write(": working\n\n");
        theCall().cut();
      },
      "upstream_failed",
    ],
  ])("has no usage if nothing was generated: %s", async (_name, end, outcome) => {
    const running = await start(STREAM);
    end();
    expect(await endOf(running)).toMatchObject({ outcome, usage: null, estimated: false });
  });

  test("is also written for a call that was never dispatched, which fails for its caller", async () => {
    await expect(start({ model: "other/x" })).rejects.toMatchObject({ code: "model_not_found" });
    await expect(start({ stream: 1 })).rejects.toMatchObject({ code: "invalid_request" });
    const nothing = { status: null, upstreamId: null, usage: null, estimated: false, firstTokenMs: null };
    expect(ends).toMatchObject([
      { outcome: "model_not_found", ...nothing },
      { outcome: "invalid_request", ...nothing },
    ]);
    expect(sink.head).toBeUndefined();
  });
});

describe("a call that is dispatched", () => {
  test("without a model goes to the default model, with its name in the body", async () => {
    defaultModel = "box/tiny";
    await start({ messages: [] });
    expect((await theCall().request).body.toString()).toBe('{"model":"tiny","messages":[]}');
  });

  test("with `model: null` is treated as without a model", async () => {
    defaultModel = "box/tiny";
    await start({ model: null, messages: [] });
    expect((await theCall().request).body.toString()).toBe('{"model":"tiny","messages":[]}');
  });

  test.each([[{ messages: [] }], [{ model: null, messages: [] }], [{ model: "", messages: [] }]])(
    "without a model is rejected if there is no default: %j",
    async (body) => {
      await expect(start(body)).rejects.toMatchObject({ code: "invalid_request", param: "model" });
    },
  );

  test("releases its body's memory with the first bytes of the response, not before", async () => {
    await start(STREAM);
    theCall().respond(200, SSE);
    expect(admission.load.bufferedBytes).toBeGreaterThan(0);
    theCall().write(chunk("Hi"));
    expect(admission.load.bufferedBytes).toBe(0);
  });

  test.each<[Dialect, string]>([
    ["chat", "/v1/chat/completions"],
    ["responses", "/v1/responses"],
  ])("of the dialect %s goes to %s if the upstream supports it", async (dialect, path) => {
    await start(WHOLE, dialect);
    expect((await theCall().request).path).toBe(path);
  });

  test("is tracked until its end, and no longer", async () => {
    const running = await start(STREAM);
    theCall().respond(200, SSE);
    sink.leave();
    await running.ended;
    live.failAll(new DomainError("unavailable", "Stopping."));
    expect(sink.error).toBeUndefined();
    expect(ends).toHaveLength(1);
  });
});

describe("a call in a dialect that not every upstream supports", () => {
  const ASK = { model: "box/tiny", input: "Hello there" };
  const place = (upstreamId: string, protocol: Dialect, rank = 0): Candidate => ({
    ...candidate,
    upstreamId,
    protocols: [protocol],
    rank,
  });

  async function answeredBy(...places: readonly Candidate[]): Promise<string | null> {
    candidates = places;
    const running = await start(ASK, "responses");
    theCall().respond(200, JSON_TYPE);
    theCall().write(JSON.stringify(WHOLE_ANSWER.responses));
    theCall().end();
    return (await running.ended).upstreamId;
  }

  test("goes to an upstream that supports the dialect", async () => {
    expect(await answeredBy(place("converted", "chat"), place("native", "responses"))).toBe("native");
  });

  test("goes to the preferred upstream even if it must be converted", async () => {
    candidates = [place("first", "chat", 0), place("second", "responses", 1)];
    const running = await start(ASK, "responses");
    expect((await theCall().request).path).toBe("/v1/chat/completions");
    theCall().respond(200, JSON_TYPE);
    theCall().write(JSON.stringify(WHOLE_ANSWER.chat));
    theCall().end();
    const usage = { inputTokens: 11, cachedInputTokens: 5, outputTokens: 7, reasoningTokens: 3 };
    expect(await endOf(running)).toMatchObject({ outcome: "ok", upstreamId: "first", usage, estimated: false });
    expect(JSON.parse(sink.text)).toMatchObject({ object: "response", status: "completed" });
  });

  test("counts twice while it is buffered, and not at all once the response begins", async () => {
    candidates = [place("converted", "chat")];
    await start({ ...ASK, stream: true }, "responses");
    expect(admission.load.bufferedBytes).toBe(2 * JSON.stringify({ ...ASK, stream: true }).length);
    theCall().respond(200, SSE);
    theCall().write(chunk("Hi"));
    expect(admission.load.bufferedBytes).toBe(0);
  });

  test("is rejected before any attempt if it cannot be expressed in the other dialect", async () => {
    candidates = [place("converted", "chat")];
    const refused = start({ ...ASK, background: true }, "responses");
    await expect(refused).rejects.toMatchObject({ code: "invalid_request", param: "background" });
    expect(upstream.calls).toEqual([]);
    expect(ends).toMatchObject([{ outcome: "invalid_request", usage: null }]);
  });

  test("can refer to responses that the same key received, but not to those of others", async () => {
    candidates = [place("converted", "chat")];
    const first = await start(ASK, "responses");
    theCall().respond(200, JSON_TYPE);
    theCall().write(JSON.stringify(WHOLE_ANSWER.chat));
    theCall().end();
    await first.ended;
    const told = JSON.parse(sink.text) as { output: [{ id: string }] };
    const input = [
      { type: "item_reference", id: told.output[0].id },
      { role: "user", content: "Why?" },
    ];
    sink = new MemorySink();
    await start({ ...ASK, input }, "responses");
    const asked = JSON.parse((await upstream.calls[1]?.request)?.body.toString() ?? "") as object;
    expect(asked).toMatchObject({ messages: [{ role: "assistant", content: "Hi ✓" }, { role: "user" }] });
    const other = { ...asKey("prj_1"), keyId: "key_2" as const };
    const refused = start({ ...ASK, input }, "responses", other);
    await expect(refused).rejects.toMatchObject({ code: "invalid_request", param: "input[0]" });
  });
});
