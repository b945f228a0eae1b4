import type { Clock } from "@fairlead/protocol/clock";
import { DomainError } from "@fairlead/protocol/errors";
import type { InferenceCaller } from "../auth/principal.ts";
import type { Prices } from "../billing/prices.ts";
import { toDomainError } from "../http/error-response.ts";
import type { AnswerSink } from "./answer-sink.ts";
import { type Attempt, Attempts } from "./attempts.ts";
import { billedCall, type CallBilling, type CallHold } from "./call-money.ts";
import { scanCall } from "./call-scan.ts";
import { CallTimes } from "./call-times.ts";
import { requireModel } from "./caller.ts";
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

export interface PipelineOptions {
  readonly models: ModelCatalog;
  readonly live: LiveCalls;
  readonly clock: Clock;
  readonly limits: InferenceLimits;
  readonly counters: InferenceCounters;
  readonly billing: CallBilling;
  /** Told once of every call that ends, in whatever way. Must not throw. */
  readonly onEnded: (end: CallEnd) => void;
}

/** A call that was dispatched. */
export interface RunningCall {
  /** Resolves, never rejects, when nothing of the call is left. */
  readonly ended: Promise<CallEnd>;
}

interface Prepared {
  readonly body: SubmittedBody;
  /** As the caller named it, or the default. */
  readonly model: string;
  readonly createdAt: number;
  readonly candidates: readonly Candidate[];
  readonly first: Attempt;
  readonly attempts: Attempts;
}

/** A call that was dispatched, and the money that is held for it. Not the body, which must not be kept for so long. */
interface Begun {
  readonly relay: Relay;
  readonly hold: CallHold;
  /** By upstream. */
  readonly prices: ReadonlyMap<string, Prices | null>;
  readonly model: string;
  readonly stream: boolean;
  readonly inputTokens: number;
}

/** What a call's end tells of its beginning. Not the body, which must not be kept for so long. */
interface Beginning extends Pick<CallEnd, "id" | "caller" | "dialect" | "stream" | "model"> {
  readonly begunAt: number;
  /** An estimate. */
  readonly inputTokens: number;
}

/**
 * The way of every call: prepare (scan, model, upstreams) → dispatch → relay → ended (decisions/0017). Nothing here knows
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
    const beginning = { id, caller, dialect, begunAt, stream: false, model: null, inputTokens: 0 };
    let begun: Begun;
    try {
      begun = await this.#begin(call, sink);
    } catch (error) {
      this.#tell(beginning, { ...NOTHING, outcome: toDomainError(error).code });
      throw error;
    }
    const { stream, inputTokens, model } = begun;
    return { ended: this.#untilEnded(begun, { ...beginning, stream, inputTokens, model }) };
  }

  async #begin(call: InferenceCall, sink: AnswerSink): Promise<Begun> {
    const prepared = await this.#prepare(call);
    const { body, model, candidates } = prepared;
    const { stream, inputTokens } = body.scan;
    const hold = await this.#options.billing.open(billedCall(call, body.scan, candidates));
    const prices = new Map(candidates.map((candidate) => [candidate.upstreamId, candidate.prices]));
    try {
      return { relay: this.#dispatch(call, { ...prepared, hold }, sink), hold, prices, model, stream, inputTokens };
    } catch (error) {
      hold.settle(null, null);
      throw error;
    }
  }

  async #prepare(call: InferenceCall): Promise<Prepared> {
    const { id, caller, dialect, body: bytes, headers } = call;
    const { models, clock, limits } = this.#options;
    const scan = scanCall(bytes);
    const name = scan.model?.name ?? (await models.defaultModel(caller.projectId)) ?? noModel();
    requireModel(caller, name);
    const { candidates } = await models.resolve(caller.projectId, name);
    const submitted = { bytes, scan, dialect };
    const createdAt = Math.floor(clock.now() / 1000);
    const ordered = nativeFirst(candidates, dialect);
    if (!speaks(ordered[0], dialect)) holdConverted(call);
    const recent = this.#recent.of(nameOf(caller));
    const attempts = new Attempts({
      id,
      createdAt,
      candidates: ordered,
      body: submitted,
      headers,
      timeouts: limits,
      recent,
    });
    const first = attempts.next();
    if (first === null) throw new DomainError("internal", "A model has no upstream.");
    const body = { ...submitted, scan: { ...scan, inputTokens: scan.inputTokens + first.referredTokens } };
    return { body, model: name, createdAt, candidates, first, attempts };
  }

  #dispatch(
    call: InferenceCall,
    { body, model, createdAt, first, attempts, hold }: Prepared & { readonly hold: CallHold },
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
      cover: (outputTokens) => hold.cover(outputTokens),
      counters,
    });
    live.add(relay);
    relay.start(first, attempts);
    return relay;
  }

  async #untilEnded({ relay, hold, prices }: Begun, beginning: Beginning): Promise<CallEnd> {
    await relay.closed;
    this.#options.live.delete(relay);
    const { usage } = usageOf(relay, beginning.inputTokens);
    return this.#tell(beginning, relay, hold.settle(usage, prices.get(relay.upstreamId ?? "") ?? null));
  }

  #tell({ begunAt, inputTokens, ...beginning }: Beginning, ending: Ending, cost = 0): CallEnd {
    const { outcome, status, upstreamId, answer } = ending;
    const { clock, onEnded } = this.#options;
    const firstTokenAt = answer?.firstTokenAt ?? null;
    const end: CallEnd = {
      ...beginning,
      outcome,
      status,
      upstreamId,
      ...usageOf(ending, inputTokens),
      cost,
      firstTokenMs: firstTokenAt === null ? null : firstTokenAt - begunAt,
      durationMs: clock.monotonic() - begunAt,
    };
    onEnded(end);
    return end;
  }
}

type Ending = Pick<Relay, "outcome" | "status" | "upstreamId" | "answer">;
const NOTHING = { status: null, upstreamId: null, answer: null };

/** The upstream's word, else what came of the answer. A refusal is no completion, and what brought nothing costs nothing. */
function usageOf(
  { status, answer }: Ending,
  inputTokens: number,
): { readonly usage: TokenUsage | null; readonly estimated: boolean } {
  const told = answer?.usage ?? null;
  if (told !== null) return { usage: told, estimated: false };
  const outputTokens = status === null || status >= 400 ? 0 : (answer?.outputTokens ?? 0);
  if (outputTokens === 0) return { usage: null, estimated: false };
  return { usage: { inputTokens, cachedInputTokens: 0, outputTokens, reasoningTokens: 0 }, estimated: true };
}

function noModel(): never {
  const message = "No default model is configured: name one in `model`. GET /v1/models lists what this key can call.";
  throw new DomainError("invalid_request", message, { param: "model" });
}

const nameOf = (caller: InferenceCaller): string => (caller.kind === "key" ? caller.keyId : caller.subjectId);

const speaks = (candidate: Candidate | undefined, dialect: Dialect): boolean =>
  candidate?.protocols.includes(dialect) === true;

/** In the order that the project set; among equals, whoever speaks the caller's dialect: nothing of the call is lost there. */
function nativeFirst(candidates: readonly Candidate[], dialect: Dialect): readonly Candidate[] {
  return candidates.toSorted((a, b) => a.rank - b.rank || Number(speaks(b, dialect)) - Number(speaks(a, dialect)));
}

/** A call that is converted is held twice. @throws DomainError `overloaded` */
function holdConverted({ body, ticket }: InferenceCall): void {
  ticket.holdBytes(2 * body.reduce((sum, piece) => sum + piece.length, 0));
}
