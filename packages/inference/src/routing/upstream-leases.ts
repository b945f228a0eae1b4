import type { Dialect } from "@fairlead/dialects/calls/dialect";
import { DomainError } from "@fairlead/protocol/errors";
import type { Clock } from "@fairlead/protocol/values/clock";
import { LRUCache } from "lru-cache";
import type { Candidate } from "../calls/model-catalog.ts";
import { Breaker, type BreakerState } from "./breaker.ts";

/** Maximum number of entries; the least recently used is evicted. */
const MAX_PLACES = 10_000;

interface Place {
  inFlight: number;
  /** Increases with each choice. */
  chosenAt: number;
}

interface FailingPlace {
  readonly breaker: Breaker;
  readonly upstreamId: string;
}

/** Why an upstream is paused. */
export type RestReason = "rate_limit_exceeded" | "overloaded";

interface RestingPlace {
  readonly reason: RestReason;
  /** Monotonic milliseconds. */
  readonly until: number;
}

export interface Rest {
  readonly reason: RestReason;
  /** Remaining time. */
  readonly ms: number;
}

/** The inputs of a choice. */
export interface PlaceChoice {
  readonly projectId: string;
  readonly candidates: readonly Candidate[];
  readonly dialect: Dialect;
}

/**
 * What this process knows about upstreams: calls in flight, failures, and requested pauses. Failures are counted per project,
 * so that no project's calls block an upstream for others (decisions/0020).
 */
export class UpstreamLeases {
  readonly #clock: Clock;
  readonly #places = new LRUCache<string, Place>({ max: MAX_PLACES });
  readonly #failing = new LRUCache<string, FailingPlace>({ max: MAX_PLACES });
  /** By upstream and model. */
  readonly #resting = new LRUCache<string, RestingPlace>({ max: MAX_PLACES });
  #choices = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Sorts candidates: paused ones last, then by the project's rank, then by the caller's dialect (which needs no conversion), then by
   * calls in flight, then round-robin.
   * @throws DomainError `unavailable` if all of them fail.
   */
  choose({ projectId, candidates, dialect }: PlaceChoice): readonly Candidate[] {
    const open = this.#failing.size === 0 ? candidates : this.#allowed(projectId, candidates);
    if (open.length < 2) return open;
    const ranked = open.map((candidate) => {
      const { inFlight = 0, chosenAt = 0 } = this.#places.get(candidate.key) ?? {};
      const rests = Number(this.restOf(candidate) !== null);
      const converts = Number(!candidate.protocols.includes(dialect));
      return { candidate, order: [rests, candidate.rank, converts, inFlight, chosenAt] };
    });
    return ranked.toSorted((a, b) => compare(a.order, b.order)).map(({ candidate }) => candidate);
  }

  /** Records a call to it. */
  begin(projectId: string, candidate: Candidate): UpstreamLease {
    return new UpstreamLease(this.#clock, {
      place: this.#placeOf(candidate),
      failing: this.#failing,
      failingKey: failingKey(projectId, candidate),
      upstreamId: candidate.upstreamId,
      rest: ({ reason, ms }) => this.#resting.set(restKey(candidate), { reason, until: this.#clock.monotonic() + ms }),
    });
  }

  /** @returns null unless it requested a pause. */
  restOf(candidate: Candidate): Rest | null {
    const known = this.#resting.size === 0 ? undefined : this.#resting.get(restKey(candidate));
    const ms = known === undefined ? 0 : known.until - this.#clock.monotonic();
    return known === undefined || ms <= 0 ? null : { reason: known.reason, ms };
  }

  /** The breakers that are not closed. */
  *breakers(): Iterable<{ readonly upstreamId: string; readonly state: BreakerState }> {
    const now = this.#clock.monotonic();
    for (const { breaker, upstreamId } of this.#failing.values()) {
      const state = breaker.state(now);
      if (state !== "closed") yield { upstreamId, state };
    }
  }

  #allowed(projectId: string, candidates: readonly Candidate[]): readonly Candidate[] {
    const now = this.#clock.monotonic();
    let soonest = Number.POSITIVE_INFINITY;
    const allowed = candidates.filter((candidate) => {
      const breaker = this.#failing.get(failingKey(projectId, candidate))?.breaker;
      const ms = breaker?.msUntilAllowed(now) ?? 0;
      soonest = Math.min(soonest, ms);
      return ms === 0;
    });
    if (allowed.length === 0) throw allFail(candidates.length, soonest);
    return allowed;
  }

  #placeOf({ key }: Candidate): Place {
    let place = this.#places.get(key);
    if (place === undefined) {
      place = { inFlight: 0, chosenAt: 0 };
      this.#places.set(key, place);
    }
    place.chosenAt = ++this.#choices;
    return place;
  }
}

interface PlaceUseParts {
  readonly place: Place;
  readonly failing: LRUCache<string, FailingPlace>;
  readonly failingKey: string;
  readonly upstreamId: string;
  readonly rest: (rest: Rest) => void;
}

/** One call at one upstream. */
export class UpstreamLease {
  readonly #clock: Clock;
  readonly #parts: PlaceUseParts;
  readonly #probe: boolean;
  /** Waiting for the response head, or a failure. */
  #undecided = true;
  #ended = false;

  constructor(clock: Clock, parts: PlaceUseParts) {
    this.#clock = clock;
    this.#parts = parts;
    parts.place.inFlight++;
    this.#probe = this.#known?.breaker.begin(clock.monotonic()) ?? false;
  }

  /** It responded, possibly with an error. */
  answered(): void {
    if (!this.#undecided) return;
    this.#undecided = false;
    const { failing, failingKey: key } = this.#parts;
    if (failing.size === 0) return;
    this.#known?.breaker.succeeded();
    failing.delete(key);
  }

  /** It failed before responding. */
  failed(): void {
    if (!this.#undecided) return;
    this.#undecided = false;
    const { failing, failingKey: key, upstreamId } = this.#parts;
    const known = this.#known ?? { breaker: new Breaker(), upstreamId };
    known.breaker.failed(this.#clock.monotonic(), this.#probe);
    failing.set(key, known);
  }

  /** It requested a pause for all calls. */
  rest(rest: Rest): void {
    this.#parts.rest(rest);
  }

  /** Idempotent. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#parts.place.inFlight--;
    if (this.#probe && this.#undecided) this.#known?.breaker.forgetProbe();
  }

  get #known(): FailingPlace | undefined {
    return this.#parts.failing.get(this.#parts.failingKey);
  }
}

const failingKey = (projectId: string, { key }: Candidate): string => `${projectId} ${key}`;
const restKey = ({ key, model }: Candidate): string => `${key} ${model}`;

function compare(a: readonly number[], b: readonly number[]): number {
  for (const [at, value] of a.entries()) {
    const difference = value - (b[at] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

function allFail(places: number, soonestMs: number): DomainError {
  const seconds = Math.max(1, Math.ceil(soonestMs / 1000));
  const who = places === 1 ? "The upstream of this model has" : "All upstreams of this model have";
  const message = `${who} failed several times in a row, so calls are paused. The next call is sent in ${seconds} s.`;
  return new DomainError("unavailable", message, { retryAfterSeconds: seconds });
}
