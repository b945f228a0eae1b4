import type { Clock } from "@fairlead/protocol/clock";
import { DomainError } from "@fairlead/protocol/errors";
import { LRUCache } from "lru-cache";
import { Breaker, type BreakerState } from "./breaker.ts";
import type { Dialect } from "./dialect.ts";
import type { Candidate } from "./model-catalog.ts";

/** Places in use at one time; those that were quiet for longest are forgotten. */
const MAX_PLACES = 10_000;
/** For how long a place's word that it is busy is taken, at most. */
const MAX_REST_MS = 60_000;

interface Place {
  inFlight: number;
  /** The larger, the later it was chosen. */
  chosenAt: number;
}

interface FailingPlace {
  readonly breaker: Breaker;
  readonly upstreamId: string;
}

/** What a choice depends on. */
export interface PlaceChoice {
  readonly projectId: string;
  readonly candidates: readonly Candidate[];
  readonly dialect: Dialect;
}

/**
 * What this process knows of the places that answer calls: how many it has in flight at each, which of them fail, and which asked
 * to be left alone for a while. Failures are counted for each project, so that no project's calls close a place that it shares
 * with others (decisions/0020).
 */
export class UpstreamPlaces {
  readonly #clock: Clock;
  readonly #places = new LRUCache<string, Place>({ max: MAX_PLACES });
  readonly #failing = new LRUCache<string, FailingPlace>({ max: MAX_PLACES });
  /** By place and model; monotonic milliseconds. */
  readonly #resting = new LRUCache<string, number>({ max: MAX_PLACES });
  #choices = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * In the order to try them: not those that rest, then as the project ranked them, then whoever speaks the caller's dialect
   * (nothing of the call is lost there), then whoever has the fewest calls in flight, then in turn.
   * @throws DomainError `unavailable` where all of them fail.
   */
  choose({ projectId, candidates, dialect }: PlaceChoice): readonly Candidate[] {
    const open = this.#failing.size === 0 ? candidates : this.#allowed(projectId, candidates);
    if (open.length < 2) return open;
    const now = this.#clock.monotonic();
    const ranked = open.map((candidate) => {
      const { inFlight = 0, chosenAt = 0 } = this.#places.get(candidate.key) ?? {};
      const rests = Number((this.#resting.get(restKey(candidate)) ?? 0) > now);
      const converts = Number(!candidate.protocols.includes(dialect));
      return { candidate, order: [rests, candidate.rank, converts, inFlight, chosenAt] };
    });
    return ranked.toSorted((a, b) => compare(a.order, b.order)).map(({ candidate }) => candidate);
  }

  /** A call is sent there. */
  begin(projectId: string, candidate: Candidate): PlaceUse {
    return new PlaceUse(this.#clock, {
      place: this.#placeOf(candidate),
      failing: this.#failing,
      failingKey: failingKey(projectId, candidate),
      upstreamId: candidate.upstreamId,
      rest: (ms) => this.#resting.set(restKey(candidate), this.#clock.monotonic() + Math.min(ms, MAX_REST_MS)),
    });
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
  readonly rest: (ms: number) => void;
}

/** One call at one place. */
export class PlaceUse {
  readonly #clock: Clock;
  readonly #parts: PlaceUseParts;
  readonly #probe: boolean;
  /** Until its answer's head, or whatever came instead. */
  #undecided = true;
  #ended = false;

  constructor(clock: Clock, parts: PlaceUseParts) {
    this.#clock = clock;
    this.#parts = parts;
    parts.place.inFlight++;
    this.#probe = this.#known?.breaker.begin(clock.monotonic()) ?? false;
  }

  /** It answered, be it with a refusal. */
  answered(): void {
    if (!this.#undecided) return;
    this.#undecided = false;
    const { failing, failingKey: key } = this.#parts;
    if (failing.size === 0) return;
    this.#known?.breaker.succeeded();
    failing.delete(key);
  }

  /** It failed before it answered. */
  failed(): void {
    if (!this.#undecided) return;
    this.#undecided = false;
    const { failing, failingKey: key, upstreamId } = this.#parts;
    const known = this.#known ?? { breaker: new Breaker(), upstreamId };
    known.breaker.failed(this.#clock.monotonic(), this.#probe);
    failing.set(key, known);
  }

  /** It wants to be left alone for so long. */
  rest(ms: number): void {
    this.#parts.rest(ms);
  }

  /** Repeating it does nothing. */
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
  const message = `${who} failed several times in a row, so that calls are held back; the next is let through in ${seconds} s.`;
  return new DomainError("unavailable", message, { retryAfterSeconds: seconds });
}
