import { DomainError } from "@fairlead/protocol/errors";

const RETRY_SECONDS = 1;

export interface AdmissionLimits {
  readonly maxCallsInFlight: number;
  readonly maxBufferedBytes: number;
}

/** What is held just now; all zero when nothing runs. */
export interface Load {
  readonly callsInFlight: number;
  readonly bufferedBytes: number;
}

/** What one project holds. */
interface Share {
  readonly projectId: string;
  calls: number;
  bytes: number;
}

/** Nobody gets the last quarter of anything who holds half of it. */
const RESERVE = 0.25;
const LARGEST_SHARE = 0.5;

/** Load shedding: refuses at once what would not fit, instead of queueing it. */
export class Admission {
  readonly #limits: AdmissionLimits;
  readonly #idle: (() => void)[] = [];
  /** By project; only those that hold something. */
  readonly #shares = new Map<string, Share>();
  #calls = 0;
  #bytes = 0;
  #stopped = false;

  constructor(limits: AdmissionLimits) {
    this.#limits = limits;
  }

  get load(): Load {
    return { callsInFlight: this.#calls, bufferedBytes: this.#bytes };
  }

  get stopped(): boolean {
    return this.#stopped;
  }

  /** @throws DomainError `overloaded`, or `unavailable` after `stop`. The ticket must be left on every path. */
  enter(): Ticket {
    if (this.#stopped) throw shuttingDown();
    if (this.#calls >= this.#limits.maxCallsInFlight) throw overloaded("Too many calls are in flight");
    this.#calls++;
    return new Ticket({
      join: (projectId) => this.#join(projectId),
      take: (bytes, share) => this.#take(bytes, share),
      leave: (share) => this.#leave(share),
    });
  }

  stop(): void {
    this.#stopped = true;
  }

  /** Resolves once no call is in flight. */
  whenIdle(): Promise<void> {
    if (this.#calls === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  #join(projectId: string): Share {
    const { maxCallsInFlight: max } = this.#limits;
    const share = this.#shares.get(projectId) ?? { projectId, calls: 0, bytes: 0 };
    const left = max - this.#calls;
    if (left < Math.floor(max * RESERVE) && share.calls >= max * LARGEST_SHARE) throw tooMuch("calls");
    share.calls++;
    this.#shares.set(projectId, share);
    return share;
  }

  /** @param bytes negative to give back. */
  #take(bytes: number, share: Share | null): void {
    const { maxBufferedBytes: max } = this.#limits;
    if (bytes > 0) {
      if (this.#bytes + bytes > max) throw overloaded("Too many large requests are in flight");
      const isLargest = share !== null && share.bytes + bytes > max * LARGEST_SHARE;
      if (isLargest && this.#bytes + bytes > max * (1 - RESERVE)) throw tooMuch("large requests");
    }
    this.#bytes += bytes;
    if (share !== null) share.bytes += bytes;
  }

  #leave(share: Share | null): void {
    if (share !== null && --share.calls === 0) this.#shares.delete(share.projectId);
    this.#calls--;
    if (this.#calls > 0) return;
    for (const resolve of this.#idle.splice(0)) resolve();
  }
}

interface Ways {
  readonly join: (projectId: string) => Share;
  readonly take: (bytes: number, share: Share | null) => void;
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

  /** Known once its caller is. @throws DomainError `overloaded` where the project holds so much that others would find nothing. */
  belongsTo(projectId: string): void {
    this.#share = this.#ways.join(projectId);
  }

  /** Makes this call's share of buffered bytes at least this large. @throws DomainError `overloaded`. */
  holdBytes(bytes: number): void {
    if (bytes <= this.#bytes) return;
    this.#ways.take(bytes - this.#bytes, this.#share);
    this.#bytes = bytes;
  }

  /** The body is no longer held. */
  releaseBytes(): void {
    this.#ways.take(-this.#bytes, this.#share);
    this.#bytes = 0;
  }

  /** The same for an answer that cannot go on as it comes; what it held is free with the ticket. @returns the refusal, or null. */
  holdAnswerBytes(bytes: number): DomainError | null {
    if (bytes <= this.#answerBytes) return null;
    try {
      this.#ways.take(bytes - this.#answerBytes, this.#share);
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
    this.#ways.take(-this.#answerBytes, this.#share);
    this.#ways.leave(this.#share);
  }
}

export function shuttingDown(): DomainError {
  return new DomainError("unavailable", "Fairlead is shutting down. Send the request again.", {
    retryAfterSeconds: RETRY_SECONDS,
  });
}

function overloaded(what: string): DomainError {
  return new DomainError("overloaded", `${what}; try again shortly.`, { retryAfterSeconds: RETRY_SECONDS });
}

function tooMuch(what: string): DomainError {
  return overloaded(`The server is busy, and this project has too many ${what} in flight`);
}
