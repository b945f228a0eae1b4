import type { Dialect } from "@fairlead/dialects/calls/dialect";
import { Distribution, REQUEST_SECONDS } from "@fairlead/hosting/distribution";
import type { CallEnd, CallOutcome } from "../calls/inference-call.ts";
import type { FaultKind } from "../routing/retry-rules.ts";
import type { FailureReason } from "../routing/upstream-failures.ts";

export interface CountedCalls {
  readonly outcome: CallOutcome;
  readonly dialect: Dialect;
  /** Name of a platform provider; `node`, or `provider` for a project's own; "" if no upstream was called. */
  readonly upstream: string;
  count: number;
}

export interface CountedFailures {
  readonly reason: FailureReason;
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

/** Counters of the inference host, rendered on request. Their number does not grow with projects, keys or models. */
export class InferenceCounters {
  /** Seconds from dispatch to the head of the upstream's response. */
  readonly firstByte = new Distribution(REQUEST_SECONDS);
  /** Seconds since the call's start. */
  readonly firstToken = new Distribution(REQUEST_SECONDS);
  readonly duration = new Distribution(REQUEST_SECONDS);
  readonly overhead = new Distribution(OVERHEAD_SECONDS);
  /** From upstreams to clients. */
  relayedBytes = 0;
  /** Retries, by the result of the previous attempt. */
  readonly retries = new Map<FaultKind, number>();
  readonly #platformUpstreams: ReadonlySet<string>;
  readonly #calls = new Map<string, CountedCalls>();
  readonly #tokens = new Map<string, CountedTokens>();
  readonly #failures = new Map<string, CountedFailures>();

  /** @param platformUpstreams counted by name; the operator controls how many there are. */
  constructor(platformUpstreams: ReadonlySet<string> = new Set()) {
    this.#platformUpstreams = platformUpstreams;
  }

  calls(): Iterable<CountedCalls> {
    return this.#calls.values();
  }

  tokens(): Iterable<CountedTokens> {
    return this.#tokens.values();
  }

  /** Failed attempts. */
  failures(): Iterable<CountedFailures> {
    return this.#failures.values();
  }

  /** A call that ended before it reached the pipeline. */
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

  failed(upstreamId: string, reason: FailureReason): void {
    const upstream = this.labelOf(upstreamId);
    const name = `${reason} ${upstream}`;
    const known = this.#failures.get(name);
    if (known === undefined) this.#failures.set(name, { reason, upstream, count: 1 });
    else known.count++;
  }

  /** Names of projects' upstreams are confidential and unlimited in number. */
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
