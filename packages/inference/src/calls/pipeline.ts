import { type CallScan, scanCall } from "@fairlead/dialects/calls/call-scan";
import type { Dialect } from "@fairlead/dialects/calls/dialect";
import { asksForUsage, type SubmittedBody } from "@fairlead/dialects/calls/submitted-body";
import { BYTES_PER_TOKEN, type TokenUsage } from "@fairlead/dialects/calls/token-usage";
import { toDomainError } from "@fairlead/hosting/errors/error-response";
import { DomainError } from "@fairlead/protocol/errors";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { InferenceCounters } from "../host/inference-counters.ts";
import type { InferenceLimits } from "../host/limits.ts";
import type { LiveCalls } from "../host/live-calls.ts";
import type { CallLimiter } from "../ports/call-limiter.ts";
import type { Permit } from "../ports/permit.ts";
import type { Prices } from "../ports/prices.ts";
import { CallRelay } from "../relay/call-relay.ts";
import { RecentItems } from "../routing/recent-items.ts";
import type { UpstreamFailures } from "../routing/upstream-failures.ts";
import type { UpstreamLeases } from "../routing/upstream-leases.ts";
import { outcomeOf } from "../routing/upstream-refusal.ts";
import type { AnswerSink } from "./answer-sink.ts";
import { Attempts, type NextAttempt } from "./attempts.ts";
import { billedCall, type CallBilling, type CallHold } from "./call-money.ts";
import { CallTimes } from "./call-times.ts";
import { type CallTrace, type CallTraces, tracedHeaders } from "./call-traces.ts";
import { callerId, requireModel } from "./caller.ts";
import type { CallEnd, InferenceCall } from "./inference-call.ts";
import type { Candidate, ModelCatalog } from "./model-catalog.ts";
import { sizeOf } from "./worst-case.ts";

/** A call's share of limits and balance; released or settled here only. */
class CallReservation {
  readonly #permit: Permit;
  readonly #hold: CallHold;

  constructor(permit: Permit, hold: CallHold) {
    this.#permit = permit;
    this.#hold = hold;
  }

  /** Reserves balance for more output. @returns the error that must end the call, or null. */
  cover(outputTokens: number): DomainError | null {
    this.#permit.generated(outputTokens);
    return this.#hold.cover(outputTokens);
  }

  /**
   * Ends the call, on every path.
   * @param usage null if nothing was generated. @param prices of the upstream that responded. @param estimated whether the usage is
   * our estimate.
   * @returns the charge in nano-dollars.
   */
  end(usage: TokenUsage | null, prices: Prices | null, estimated = false): number {
    this.#permit.end(usage === null ? null : usage.inputTokens + usage.outputTokens);
    return this.#hold.settle(usage, prices, estimated);
  }
}

export interface PipelineOptions {
  readonly models: ModelCatalog;
  readonly live: LiveCalls;
  readonly clock: Clock;
  readonly limits: InferenceLimits;
  readonly counters: InferenceCounters;
  readonly failures: Pick<UpstreamFailures, "add">;
  readonly limiter: CallLimiter;
  readonly billing: CallBilling;
  /** Null: no tracing. */
  readonly traces: CallTraces | null;
  readonly places: UpstreamLeases;
  /** In [0, 1); for delays between attempts. */
  readonly random: () => number;
  /** Called once for every finished call. Must not throw. */
  readonly onEnded: (end: CallEnd) => void;
}

/** A call that was dispatched. */
export interface RunningCall {
  /** Resolves, never rejects, when nothing of the call is left. */
  readonly ended: Promise<CallEnd>;
}

/** Candidates of a call. */
interface Routed {
  readonly scan: CallScan;
  /** As the caller named it, or the default. */
  readonly model: string;
  readonly candidates: readonly Candidate[];
}

interface Prepared extends Omit<Routed, "scan"> {
  readonly body: SubmittedBody;
  readonly createdAt: number;
  readonly first: NextAttempt;
  readonly attempts: Attempts;
}

/** What a dispatched call holds, without the body, which must be released early. */
interface Begun {
  readonly relay: CallRelay;
  readonly claims: CallReservation;
  readonly model: string;
  readonly stream: boolean;
  readonly inputTokens: number;
}

/** What the end of a call needs from its start, without the body, which must be released early. */
interface Beginning extends Pick<CallEnd, "id" | "caller" | "dialect" | "stream" | "model"> {
  readonly begunAt: number;
  /** An estimate. */
  readonly inputTokens: number;
  readonly trace: CallTrace | null;
}

/** The steps of every call: scan, limits, upstreams, money, dispatch, relay, end (decisions/0017). Independent of where the caller is. */
export class InferencePipeline {
  readonly #options: PipelineOptions;
  readonly #recent: RecentItems;

  constructor(options: PipelineOptions) {
    this.#options = options;
    this.#recent = new RecentItems(options.clock);
  }

  /**
   * Resolves once the call is dispatched; from then on, everything goes to the sink.
   * @throws DomainError if the call is not dispatched; then the sink was not called.
   */
  async start(call: InferenceCall, sink: AnswerSink): Promise<RunningCall> {
    const { id, caller, dialect, begunAt } = call;
    const trace = this.#options.traces?.begin(call) ?? null;
    const beginning = { id, caller, dialect, begunAt, trace, stream: false, model: null, inputTokens: 0 };
    let begun: Begun;
    try {
      begun = await this.#begin({ ...call, headers: tracedHeaders(call.headers, trace) }, sink);
    } catch (error) {
      this.#tell(beginning, { ...NOTHING, outcome: outcomeOf(toDomainError(error)) });
      throw error;
    }
    const { stream, inputTokens, model } = begun;
    return { ended: this.#untilEnded(begun, { ...beginning, stream, inputTokens, model }) };
  }

  async #begin(call: InferenceCall, sink: AnswerSink): Promise<Begun> {
    const routed = await this.#route(call);
    const permit = await this.#options.limiter.admit(call.caller, sizeOf({ ...routed, dialect: call.dialect }));
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
    const { body, model, candidates, first } = prepared;
    const { stream, inputTokens } = body.scan;
    const scanned = { ...body, candidates, referredBytes: first.attempt.referredBytes };
    const hold = await this.#options.billing.open(billedCall(call, scanned));
    const claims = new CallReservation(permit, hold);
    try {
      return { relay: this.#dispatch(call, { ...prepared, claims }, sink), claims, model, stream, inputTokens };
    } catch (error) {
      claims.end(null, null);
      throw error;
    }
  }

  async #route({ caller, dialect, body, idempotencyKey, known }: InferenceCall): Promise<Routed> {
    const { models } = this.#options;
    if (known !== undefined) {
      requireModel(caller, known.model);
      return known;
    }
    const scan = scanCall(body, dialect);
    if (scan.stream && idempotencyKey !== undefined) throw notRepeatable();
    const model = scan.model?.name ?? (await models.defaultModel(caller.projectId)) ?? noModel();
    requireModel(caller, model);
    const { candidates } = await models.resolve(caller.projectId, model);
    return { scan, model, candidates };
  }

  #prepare(call: InferenceCall, { scan, model, candidates }: Routed): Prepared {
    const { id, caller, dialect, body: bytes, headers, known } = call;
    const { clock, limits, places, random } = this.#options;
    const { projectId } = caller;
    const submitted = { bytes, scan, dialect, parsed: known?.parsed };
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
    const inputTokens = scan.inputTokens + Math.ceil(first.attempt.referredBytes / BYTES_PER_TOKEN);
    const body = { ...submitted, scan: { ...scan, inputTokens } };
    return { body, model, createdAt, candidates, first, attempts };
  }

  #dispatch(
    call: InferenceCall,
    { body, model, createdAt, first, attempts, claims }: Prepared & { readonly claims: CallReservation },
    sink: AnswerSink,
  ): CallRelay {
    const { clock, counters, failures, limits, live } = this.#options;
    const { id, caller, dialect, ticket, begunAt, uploadMs } = call;
    const { projectId } = caller;
    const heldBytes = call.known?.heldBytes ?? 0;
    const now = (): number => clock.monotonic();
    const relay = new CallRelay(sink, {
      dialect,
      stream: body.scan.stream,
      readsEvents: sink.readsEvents,
      hidesUsage: !asksForUsage(body),
      requestId: id,
      model,
      createdAt,
      keepAliveMs: limits.keepAliveMs,
      now,
      times: new CallTimes({ begunAt, uploadMs, now }),
      onCommitted: () => ticket.releaseBytes(),
      onFailure: (upstreamId, error) => failures.add({ requestId: id, projectId, upstreamId }, error),
      cover: (outputTokens) => claims.cover(outputTokens),
      hold: (bytes) => ticket.holdAnswerBytes(heldBytes + bytes),
      counters,
    });
    live.add(relay);
    relay.start(first, attempts);
    return relay;
  }

  async #untilEnded({ relay, claims }: Begun, beginning: Beginning): Promise<CallEnd> {
    await relay.closed;
    this.#options.live.delete(relay);
    const { usage, estimated } = usageOf(relay, beginning.inputTokens);
    return this.#tell(beginning, relay, claims.end(usage, relay.prices, estimated));
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

type Ending = Pick<CallRelay, "outcome" | "status" | "upstreamId" | "answer" | "attempts" | "overheadMs">;
const NOTHING = { status: null, upstreamId: null, answer: null, attempts: 0, overheadMs: null };

/** The upstream's usage, otherwise an estimate. A rejected call costs nothing. */
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

/** Ignoring the header would let callers believe that nothing can happen twice. */
function notRepeatable(): DomainError {
  const message = "Streaming calls cannot be replayed. Omit `Idempotency-Key` or `stream`.";
  return new DomainError("invalid_request", message, { param: "Idempotency-Key" });
}

function noModel(): never {
  const message =
    "No default model is configured. Set `model`. GET /v1/models lists the models that this key can call.";
  throw new DomainError("invalid_request", message, { param: "model" });
}

const speaks = (candidate: Candidate | undefined, dialect: Dialect): boolean =>
  candidate?.protocols.includes(dialect) === true;

/** A converted call counts twice against the memory budget: original and converted body. @throws DomainError `overloaded` */
function holdConverted({ body, ticket }: InferenceCall): void {
  ticket.holdBytes(2 * body.reduce((sum, piece) => sum + piece.length, 0));
}
