import { once } from "node:events";
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import { scanCall } from "@fairlead/dialects/calls/call-scan";
import type { Dialect } from "@fairlead/dialects/calls/dialect";
import { systemClock } from "@fairlead/protocol/values/clock";
import { Attempts } from "../calls/attempts.ts";
import { CallTimes } from "../calls/call-times.ts";
import type { Candidate } from "../calls/model-catalog.ts";
import { HttpSink } from "../host/http-sink.ts";
import { InferenceCounters } from "../host/inference-counters.ts";
import type { CallerItems } from "../routing/recent-items.ts";
import type { RetryLimits } from "../routing/retry-rules.ts";
import { UpstreamLeases } from "../routing/upstream-leases.ts";
import { type ScriptedCall, ScriptedUpstream } from "../testing/scripted-upstream.ts";
import { CallRelay } from "./call-relay.ts";

export const LIMITS = { firstByteMs: 100, idleMs: 200, totalMs: 10_000 };
export const NOTHING_RECENT: CallerItems = { remember: () => undefined, find: () => undefined };
export const KEEP_ALIVE_MS = 50;
export const SSE = { "content-type": "text/event-stream; charset=utf-8" };
export const JSON_TYPE = { "content-type": "application/json" };
export const DONE = "data: [DONE]\n\n";

export const chunk = (content: string, rest: object = {}): string =>
  `data: ${JSON.stringify({ id: "c", choices: [{ index: 0, delta: { content }, finish_reason: null }], ...rest })}\n\n`;

export interface Setting {
  readonly dialect?: Dialect;
  readonly stream?: boolean;
  readonly hidesUsage?: boolean;
  /** How many upstreams there are to try. */
  readonly upstreams?: number;
  /** What they speak; the caller's dialect, unless it is to be converted. */
  readonly speaks?: Dialect;
  /** Without a wait, unless the test says so: every upstream is asked once. */
  readonly retries?: RetryLimits;
  /** What the caller's body holds besides. */
  readonly body?: Readonly<Record<string, unknown>>;
}

/** One call between a scripted upstream and a real HTTP caller. */
export interface Scene {
  readonly relay: CallRelay;
  /** The first attempt. */
  readonly call: ScriptedCall;
  /** All attempts so far. */
  readonly calls: readonly ScriptedCall[];
  readonly response: ServerResponse;
  /** The caller's view; hangs until headers come. */
  readonly answer: Promise<IncomingMessage>;
  readonly committed: () => number;
  /** Moves the clock and looks at the time-outs. */
  readonly pass: (ms: number) => void;
  readonly leave: () => void;
  readonly counters: InferenceCounters;
}

export class RelayStage {
  readonly #server: Server = createServer();

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async begin(setting: Setting = {}): Promise<Scene> {
    const { dialect = "chat", stream = true, hidesUsage = true, upstreams = 1, speaks = dialect, body = {} } = setting;
    const { retries = { maxAttempts: 9, maxRetryWaitMs: 0 } } = setting;
    const { request, response, answer } = await this.#connect();
    let now = 0;
    let committed = 0;
    const upstream = new ScriptedUpstream();
    const counters = new InferenceCounters();
    const clock = (): number => now;
    const relay = new CallRelay(new HttpSink({ response, requestId: "req_1", headers: {} }), {
      dialect,
      stream,
      hidesUsage,
      readsEvents: false,
      requestId: "req_1",
      model: "n/m",
      createdAt: 1000,
      keepAliveMs: KEEP_ALIVE_MS,
      now: clock,
      times: new CallTimes({ begunAt: now, uploadMs: 0, now: clock }),
      onCommitted: () => void committed++,
      onFailure: () => undefined,
      cover: () => null,
      hold: () => null,
      counters,
    });
    const tries = attempts(upstream, { dialect, stream, upstreams, speaks, body, retries });
    relay.start(tries.first(), tries);
    const [call] = upstream.calls;
    if (call === undefined) throw new Error("not dispatched");
    const pass = (ms: number): void => {
      now += ms;
      relay.check(now);
    };
    const leave = (): void => void request.destroy();
    return {
      relay,
      call,
      calls: upstream.calls,
      response,
      answer,
      committed: () => committed,
      pass,
      leave,
      counters,
    };
  }

  async #connect() {
    const { port } = this.#server.address() as AddressInfo;
    const request = httpRequest({ port, host: "127.0.0.1", agent: false });
    request.on("error", () => undefined);
    const answer = once(request, "response").then(([message]) => message as IncomingMessage);
    answer.catch(() => undefined);
    request.end();
    const [, response] = (await once(this.#server, "request")) as [IncomingMessage, ServerResponse];
    return { request, response, answer };
  }
}

/** What does not matter to an attempt. */
export const PLACE = {
  key: "nod_1",
  rank: 0,
  forwardHeaders: [],
  contextTokens: null,
  maxOutputTokens: null,
  prices: null,
} as const satisfies Partial<Candidate>;

function attempts(upstream: ScriptedUpstream, setting: Required<Omit<Setting, "hidesUsage">>): Attempts {
  const { dialect, stream, upstreams, speaks, body, retries } = setting;
  const bytes = [Buffer.from(JSON.stringify({ model: "n/m", stream, ...body }))];
  const candidates = Array.from(
    { length: upstreams },
    (_, at): Candidate => ({
      ...PLACE,
      upstreamId: `node:${at}`,
      kind: "node",
      model: `m${at}`,
      protocols: [speaks],
      open: () => upstream,
    }),
  );
  return new Attempts({
    id: "req_1",
    createdAt: 1000,
    candidates,
    body: { bytes, scan: scanCall(bytes, dialect), dialect },
    headers: {},
    timeouts: LIMITS,
    recent: NOTHING_RECENT,
    places: new UpstreamLeases(systemClock),
    projectId: "prj_1",
    retries,
    random: () => 0.5,
  });
}
