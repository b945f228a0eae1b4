import type { Clock } from "@fairlead/protocol/clock";
import { DomainError } from "@fairlead/protocol/errors";
import { toDomainError } from "../http/error-response.ts";
import type { CallLimiter } from "../limits/call-limiter.ts";
import type { Permit } from "../limits/permit.ts";
import type { AnswerSink } from "./answer-sink.ts";
import { type Attempt, Attempts } from "./attempts.ts";
import { CallClaims } from "./call-claims.ts";
import { billedCall, type CallBilling } from "./call-money.ts";
import { type CallScan, scanCall } from "./call-scan.ts";
import { CallTimes } from "./call-times.ts";
import { type CallTrace, type CallTraces, tracedHeaders } from "./call-traces.ts";
import { callerId, requireModel } from "./caller.ts";
import type { Dialect } from "./dialect.ts";
import type { CallEnd, InferenceCall } from "./inference-call.ts";
import type { InferenceCounters } from "./inference-counters.ts";
import type { InferenceLimits } from "./limits.ts";
import type { LiveCalls } from "./live-calls.ts";
import type { Candidate, ModelCatalog } from "./model-catalog.ts";
import { RecentItems } from "./recent-items.ts";
import { Relay } from "./relay.ts";
import { asksForUsage, type SubmittedBody } from "./submitted-body.ts";
import type { TokenUsage } from "./token-usage.ts";
import type { UpstreamPlaces } from "./upstream-places.ts";

export interface PipelineOptions {
  readonly models: ModelCatalog;
  readonly live: LiveCalls;
  readonly clock: Clock;
  readonly limits: InferenceLimits;
  readonly counters: InferenceCounters;
  readonly limiter: CallLimiter;
  readonly billing: CallBilling;
  /** Null: nobody traces. */
  readonly traces: CallTraces | null;
  readonly places: UpstreamPlaces;
  /** In [0, 1); for the waits between attempts. */
  readonly random: () => number;
  /** Told once of every call that ends, in whatever way. Must not throw. */
  readonly onEnded: (end: CallEnd) => void;
}

/** A call that was dispatched. */
export interface RunningCall {
  /** Resolves, never rejects, when nothing of the call is left. */
  readonly ended: Promise<CallEnd>;
}

/** Where a call can go. */
interface Routed {
  readonly scan: CallScan;
  /** As the caller named it, or the default. */
  readonly model: string;
  readonly candidates: readonly Candidate[];
}

interface Prepared extends Omit<Routed, "scan"> {
  readonly body: SubmittedBody;
  readonly createdAt: number;
  readonly first: Attempt;
  readonly attempts: Attempts;
}

/** A call that was dispatched, and what is taken for it. Not the body, which must not be kept for so long. */
interface Begun {
  readonly relay: Relay;
  readonly claims: CallClaims;
  readonly model: string;
  readonly stream: boolean;
  readonly inputTokens: number;
}

/** What a call's end tells of its beginning. Not the body, which must not be kept for so long. */
interface Beginning extends Pick<CallEnd, "id" | "caller" | "dialect" | "stream" | "model"> {
  readonly begunAt: number;
  /** An estimate. */
  readonly inputTokens: number;
  readonly trace: CallTrace | null;
}

/**
 * The way of every call: route (scan, model) → limits → prepare (upstreams) → money → dispatch → relay → ended (decisions/0017). Nothing here knows
 * whether the caller is at the other end of a connection or in this process.
 */
export class InferencePipeline {
  readonly #options: PipelineOptions;
  readonly #recent: RecentItems;

  constructor(options: PipelineOptions) {
    this.#options = options;
    this.#recent = new RecentItems(options.clock);
  }

  /**
   * Resolves once the call is dispatched; from then on all is told to the sink.
   * @throws DomainError for a call that is not dispatched; then nothing was told to the sink.
   */
  async start(call: InferenceCall, sink: AnswerSink): Promise<RunningCall> {
    const { id, caller, dialect, begunAt } = call;
    const trace = this.#options.traces?.begin(call) ?? null;
    const beginning = { id, caller, dialect, begunAt, trace, stream: false, model: null, inputTokens: 0 };
    let begun: Begun;
    try {
      begun = await this.#begin({ ...call, headers: tracedHeaders(call.headers, trace) }, sink);
    } catch (error) {
      this.#tell(beginning, { ...NOTHING, outcome: toDomainError(error).code });
      throw error;
    }
    const { stream, inputTokens, model } = begun;
    return { ended: this.#untilEnded(begun, { ...beginning, stream, inputTokens, model }) };
  }

  async #begin(call: InferenceCall, sink: AnswerSink): Promise<Begun> {
    const routed = await this.#route(call);
    const { inputTokens, outputLimit } = routed.scan;
    const permit = await this.#options.limiter.admit(call.caller, { inputTokens, outputLimit });
    sink.carry(permit.headers);
    if (permit.refusal !== null) throw permit.refusal;
    try {
      return await this.#beginPermitted(call, { routed, permit }, sink);
    } catch (error) {
      permit.end(null);
      throw error;
    }
  }

  async #beginPermitted(
    call: InferenceCall,
    { routed, permit }: { readonly routed: Routed; readonly permit: Permit },
    sink: AnswerSink,
  ): Promise<Begun> {
    const prepared = this.#prepare(call, routed);
    const { body, model, candidates } = prepared;
    const { stream, inputTokens } = body.scan;
    const hold = await this.#options.billing.open(billedCall(call, body.scan, candidates));
    const claims = new CallClaims(permit, hold);
    try {
      return { relay: this.#dispatch(call, { ...prepared, claims }, sink), claims, model, stream, inputTokens };
    } catch (error) {
      claims.end(null, null);
      throw error;
    }
  }

  async #route({ caller, body, idempotencyKey }: InferenceCall): Promise<Routed> {
    const { models } = this.#options;
    const scan = scanCall(body);
    if (scan.stream && idempotencyKey !== undefined) throw notRepeatable();
    const model = scan.model?.name ?? (await models.defaultModel(caller.projectId)) ?? noModel();
    requireModel(caller, model);
    const { candidates } = await models.resolve(caller.projectId, model);
    return { scan, model, candidates };
  }

  #prepare(call: InferenceCall, { scan, model, candidates }: Routed): Prepared {
    const { id, caller, dialect, body: bytes, headers } = call;
    const { clock, limits, places, random } = this.#options;
    const { projectId } = caller;
    const submitted = { bytes, scan, dialect };
    const createdAt = Math.floor(clock.now() / 1000);
    const ordered = places.choose({ projectId, candidates, dialect });
    if (!speaks(ordered[0], dialect)) holdConverted(call);
    const attempts = new Attempts({
      id,
      createdAt,
      projectId,
      candidates: ordered,
      body: submitted,
      headers,
      timeouts: limits,
      retries: limits,
      recent: this.#recent.of(callerId(caller)),
      places,
      random,
    });
    const first = attempts.first();
    const body = { ...submitted, scan: { ...scan, inputTokens: scan.inputTokens + first.referredTokens } };
    return { body, model, createdAt, candidates, first, attempts };
  }

  #dispatch(
    call: InferenceCall,
    { body, model, createdAt, first, attempts, claims }: Prepared & { readonly claims: CallClaims },
    sink: AnswerSink,
  ): Relay {
    const { clock, counters, limits, live } = this.#options;
    const { id, dialect, ticket, begunAt, uploadMs } = call;
    const now = (): number => clock.monotonic();
    const relay = new Relay(sink, {
      dialect,
      stream: body.scan.stream,
      hidesUsage: !asksForUsage(body),
      requestId: id,
      model,
      createdAt,
      keepAliveMs: limits.keepAliveMs,
      now,
      times: new CallTimes({ begunAt, uploadMs, now }),
      onCommitted: () => ticket.releaseBytes(),
      cover: (outputTokens) => claims.cover(outputTokens),
      hold: (bytes) => ticket.holdAnswerBytes(bytes),
      counters,
    });
    live.add(relay);
    relay.start(first, attempts);
    return relay;
  }

  async #untilEnded({ relay, claims }: Begun, beginning: Beginning): Promise<CallEnd> {
    await relay.closed;
    this.#options.live.delete(relay);
    const { usage } = usageOf(relay, beginning.inputTokens);
    return this.#tell(beginning, relay, claims.end(usage, relay.prices));
  }

  #tell({ begunAt, inputTokens, trace, ...beginning }: Beginning, ending: Ending, cost = 0): CallEnd {
    const { outcome, status, upstreamId, answer, attempts, overheadMs } = ending;
    const { clock, counters, onEnded } = this.#options;
    const firstTokenAt = answer?.firstTokenAt ?? null;
    const end: CallEnd = {
      ...beginning,
      outcome,
      status,
      upstreamId,
      ...usageOf(ending, inputTokens),
      cost,
      attempts,
      overheadMs,
      firstTokenMs: firstTokenAt === null ? null : firstTokenAt - begunAt,
      durationMs: clock.monotonic() - begunAt,
    };
    counters.ended(end);
    trace?.end(end);
    onEnded(end);
    return end;
  }
}

type Ending = Pick<Relay, "outcome" | "status" | "upstreamId" | "answer" | "attempts" | "overheadMs">;
const NOTHING = { status: null, upstreamId: null, answer: null, attempts: 0, overheadMs: null };

/** The upstream's word, else what came of the answer. A refusal is no completion, and what brought nothing costs nothing. */
function usageOf(
  { status, answer }: Ending,
  inputTokens: number,
): { readonly usage: TokenUsage | null; readonly estimated: boolean } {
  if (status !== null && status >= 400) return { usage: null, estimated: false };
  const told = answer?.usage ?? null;
  if (told !== null) return { usage: told, estimated: false };
  const outputTokens = status === null ? 0 : (answer?.outputTokens ?? 0);
  if (outputTokens === 0) return { usage: null, estimated: false };
  return { usage: { inputTokens, cachedInputTokens: 0, outputTokens, reasoningTokens: 0 }, estimated: true };
}

/** To ignore the header would let its caller believe that nothing can happen twice. */
function notRepeatable(): DomainError {
  const message = "A stream cannot be replayed: send the call without `Idempotency-Key`, or without `stream`.";
  return new DomainError("invalid_request", message, { param: "Idempotency-Key" });
}

function noModel(): never {
  const message = "No default model is configured: name one in `model`. GET /v1/models lists what this key can call.";
  throw new DomainError("invalid_request", message, { param: "model" });
}

const speaks = (candidate: Candidate | undefined, dialect: Dialect): boolean =>
  candidate?.protocols.includes(dialect) === true;

/** A call that is converted is held twice. @throws DomainError `overloaded` */
function holdConverted({ body, ticket }: InferenceCall): void {
  ticket.holdBytes(2 * body.reduce((sum, piece) => sum + piece.length, 0));
}
