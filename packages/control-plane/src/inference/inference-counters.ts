import { Distribution, REQUEST_SECONDS } from "../distribution.ts";
import type { Dialect } from "./dialect.ts";
import type { CallEnd, CallOutcome } from "./inference-call.ts";
import type { FaultKind } from "./retry-rules.ts";

export interface CountedCalls {
  readonly outcome: CallOutcome;
  readonly dialect: Dialect;
  /** A provider of the platform by name; `node`, or `provider` for one of a project; "" where none was asked. */
  readonly upstream: string;
  count: number;
}

type TokenKind = "input" | "cached_input" | "output" | "reasoning";

interface CountedTokens {
  readonly kind: TokenKind;
  readonly upstream: string;
  count: number;
}

const OVERHEAD_SECONDS = [0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1];

/** What the inference host counts: plain numbers, rendered when somebody asks. Nothing grows with projects, keys or models. */
export class InferenceCounters {
  /** Seconds from a dispatch to the head of the upstream's answer. */
  readonly firstByte = new Distribution(REQUEST_SECONDS);
  /** From a call's beginning. */
  readonly firstToken = new Distribution(REQUEST_SECONDS);
  readonly duration = new Distribution(REQUEST_SECONDS);
  readonly overhead = new Distribution(OVERHEAD_SECONDS);
  /** From upstreams to callers. */
  relayedBytes = 0;
  /** Further attempts, by what the one before brought. */
  readonly retries = new Map<FaultKind, number>();
  readonly #platformUpstreams: ReadonlySet<string>;
  readonly #calls = new Map<string, CountedCalls>();
  readonly #tokens = new Map<string, CountedTokens>();

  /** @param platformUpstreams those that are told apart by name: their number is the operator's choice. */
  constructor(platformUpstreams: ReadonlySet<string> = new Set()) {
    this.#platformUpstreams = platformUpstreams;
  }

  calls(): Iterable<CountedCalls> {
    return this.#calls.values();
  }

  tokens(): Iterable<CountedTokens> {
    return this.#tokens.values();
  }

  /** A call that never came so far as to be one of the pipeline's. */
  turnedAway(outcome: CallOutcome, dialect: Dialect): void {
    this.#count(outcome, dialect, "");
  }

  ended({ outcome, dialect, upstreamId, usage, firstTokenMs, durationMs, overheadMs }: CallEnd): void {
    const upstream = this.labelOf(upstreamId);
    this.#count(outcome, dialect, upstream);
    this.duration.observe(durationMs / 1000);
    if (firstTokenMs !== null) this.firstToken.observe(firstTokenMs / 1000);
    if (overheadMs !== null) this.overhead.observe(overheadMs / 1000);
    if (usage === null) return;
    this.#addTokens("input", upstream, usage.inputTokens);
    this.#addTokens("cached_input", upstream, usage.cachedInputTokens);
    this.#addTokens("output", upstream, usage.outputTokens);
    this.#addTokens("reasoning", upstream, usage.reasoningTokens);
  }

  retried(after: FaultKind): void {
    this.retries.set(after, (this.retries.get(after) ?? 0) + 1);
  }

  /** Names of projects' own upstreams are told to nobody, and would grow without end. */
  labelOf(upstreamId: string | null): string {
    if (upstreamId === null || this.#platformUpstreams.has(upstreamId)) return upstreamId ?? "";
    return upstreamId.startsWith("node:") ? "node" : "provider";
  }

  #count(outcome: CallOutcome, dialect: Dialect, upstream: string): void {
    const name = `${outcome} ${dialect} ${upstream}`;
    const known = this.#calls.get(name);
    if (known === undefined) this.#calls.set(name, { outcome, dialect, upstream, count: 1 });
    else known.count++;
  }

  #addTokens(kind: TokenKind, upstream: string, count: number): void {
    if (count === 0) return;
    const name = `${kind} ${upstream}`;
    const known = this.#tokens.get(name);
    if (known === undefined) this.#tokens.set(name, { kind, upstream, count });
    else known.count += count;
  }
}
