import { DomainError } from "@fairlead/protocol/errors";
import { type Claim, FairShare, type Holding } from "../fair-share.ts";

const RETRY_SECONDS = 1;

export interface AdmissionLimits {
  readonly maxCallsInFlight: number;
  readonly maxBufferedBytes: number;
  /** Maximum share of one party, of 1. */
  readonly ownerShare: number;
}

export type AdmissionBound =
  | "calls_in_flight"
  | "calls_in_flight_of_owner"
  | "buffered_bytes"
  | "buffered_bytes_of_owner";

/** Counts rejections by reason. */
export interface AdmissionBounds {
  reached(bound: AdmissionBound): void;
}

/** Current usage; all zero when idle. */
export interface Load {
  readonly callsInFlight: number;
  readonly bufferedBytes: number;
}

/** Usage of one party. */
interface Share {
  readonly party: string;
  readonly calls: Holding;
  readonly bytes: Holding;
}

/** Load shedding: rejects immediately what does not fit or would leave nothing for others, instead of queueing it. */
export class Admission {
  readonly #limits: AdmissionLimits;
  readonly #bounds: AdmissionBounds;
  readonly #idle: (() => void)[] = [];
  /** By party; only parties in use. */
  readonly #shares = new Map<string, Share>();
  readonly #callShares: FairShare;
  readonly #byteShares: FairShare;
  #calls = 0;
  #leaving = false;
  #stopped = false;

  constructor(limits: AdmissionLimits, bounds: AdmissionBounds) {
    this.#limits = limits;
    this.#bounds = bounds;
    this.#callShares = new FairShare(limits.maxCallsInFlight, limits.ownerShare);
    this.#byteShares = new FairShare(limits.maxBufferedBytes, limits.ownerShare);
  }

  get load(): Load {
    return { callsInFlight: this.#calls, bufferedBytes: this.#byteShares.used };
  }

  get isReady(): boolean {
    return !this.#leaving && !this.#stopped;
  }

  get stopped(): boolean {
    return this.#stopped;
  }

  /** @throws DomainError `overloaded`, or `unavailable` after `stop`. Every path must call `leave` on the ticket. */
  enter(): Ticket {
    if (this.#stopped) throw shuttingDown();
    if (this.#calls >= this.#limits.maxCallsInFlight) {
      this.#bounds.reached("calls_in_flight");
      throw overloaded("Too many calls are in flight");
    }
    this.#calls++;
    return new Ticket({
      join: (party) => this.#join(party),
      claim: (bytes, share) => this.#claim(bytes, share),
      giveBack: (bytes, share) => this.#byteShares.giveBack(bytes, share?.bytes ?? null),
      leave: (share) => this.#leave(share),
    });
  }

  /** Only readiness ends; calls are still admitted. */
  leave(): void {
    this.#leaving = true;
  }

  stop(): void {
    this.#stopped = true;
  }

  /** Resolves once no call is in flight. */
  whenIdle(): Promise<void> {
    if (this.#calls === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  #join(party: string): Share {
    const share = this.#shares.get(party) ?? { party, calls: { amount: 0 }, bytes: { amount: 0 } };
    if (this.#callShares.claim(1, share.calls) !== "granted") {
      this.#bounds.reached("calls_in_flight_of_owner");
      throw tooMuch("calls");
    }
    this.#shares.set(party, share);
    return share;
  }

  #claim(bytes: number, share: Share | null): void {
    const claim: Claim = this.#byteShares.claim(bytes, share?.bytes ?? null);
    if (claim === "granted") return;
    if (claim === "full") {
      this.#bounds.reached("buffered_bytes");
      throw overloaded("Too many large requests are in flight");
    }
    this.#bounds.reached("buffered_bytes_of_owner");
    throw tooMuch("large requests");
  }

  #leave(share: Share | null): void {
    if (share !== null) {
      this.#callShares.giveBack(1, share.calls);
      if (share.calls.amount === 0) this.#shares.delete(share.party);
    }
    this.#calls--;
    if (this.#calls > 0) return;
    for (const resolve of this.#idle.splice(0)) resolve();
  }
}

interface Ways {
  readonly join: (party: string) => Share;
  /** @throws DomainError `overloaded`. */
  readonly claim: (bytes: number, share: Share | null) => void;
  readonly giveBack: (bytes: number, share: Share | null) => void;
  readonly leave: (share: Share | null) => void;
}

/** One call's share of the host. */
export class Ticket {
  readonly #ways: Ways;
  #share: Share | null = null;
  #bytes = 0;
  #answerBytes = 0;
  #left = false;

  constructor(ways: Ways) {
    this.#ways = ways;
  }

  /**
   * Called when the caller is known, before bytes are reserved.
   * @param party the user who owns the project. @throws DomainError `overloaded` if its share is used up.
   */
  belongsTo(party: string): void {
    this.#share = this.#ways.join(party);
  }

  /** Grows this call's share of buffered bytes to at least this. @throws DomainError `overloaded`. */
  holdBytes(bytes: number): void {
    if (bytes <= this.#bytes) return;
    this.#ways.claim(bytes - this.#bytes, this.#share);
    this.#bytes = bytes;
  }

  /** Releases the body. */
  releaseBytes(): void {
    this.#ways.giveBack(this.#bytes, this.#share);
    this.#bytes = 0;
  }

  /** Reserves memory for a buffered response, released with the ticket. @returns the error, or null. */
  holdAnswerBytes(bytes: number): DomainError | null {
    if (bytes <= this.#answerBytes) return null;
    try {
      this.#ways.claim(bytes - this.#answerBytes, this.#share);
    } catch (error) {
      if (error instanceof DomainError) return error;
      throw error;
    }
    this.#answerBytes = bytes;
    return null;
  }

  leave(): void {
    if (this.#left) return;
    this.#left = true;
    this.releaseBytes();
    this.#ways.giveBack(this.#answerBytes, this.#share);
    this.#ways.leave(this.#share);
  }
}

export function shuttingDown(): DomainError {
  return new DomainError("unavailable", "Fairlead is shutting down. Retry the request.", {
    retryAfterSeconds: RETRY_SECONDS,
  });
}

function overloaded(what: string): DomainError {
  return new DomainError("overloaded", `${what}. Retry shortly.`, { retryAfterSeconds: RETRY_SECONDS });
}

function tooMuch(what: string): DomainError {
  return overloaded(`The owner of this project has too many ${what} in flight`);
}
