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

/** Load shedding: refuses at once what would not fit, instead of queueing it. */
export class Admission {
  readonly #limits: AdmissionLimits;
  readonly #idle: (() => void)[] = [];
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
    return new Ticket(
      (bytes) => this.#take(bytes),
      () => this.#leave(),
    );
  }

  stop(): void {
    this.#stopped = true;
  }

  /** Resolves once no call is in flight. */
  whenIdle(): Promise<void> {
    if (this.#calls === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  /** @param bytes negative to give back. */
  #take(bytes: number): void {
    if (this.#bytes + bytes > this.#limits.maxBufferedBytes) throw overloaded("Too many large requests are in flight");
    this.#bytes += bytes;
  }

  #leave(): void {
    this.#calls--;
    if (this.#calls > 0) return;
    for (const resolve of this.#idle.splice(0)) resolve();
  }
}

/** One call's share of the host. */
export class Ticket {
  readonly #take: (bytes: number) => void;
  readonly #leave: () => void;
  #bytes = 0;
  #left = false;

  constructor(take: (bytes: number) => void, leave: () => void) {
    this.#take = take;
    this.#leave = leave;
  }

  /** Makes this call's share of buffered bytes at least this large. @throws DomainError `overloaded`. */
  holdBytes(bytes: number): void {
    if (bytes <= this.#bytes) return;
    this.#take(bytes - this.#bytes);
    this.#bytes = bytes;
  }

  /** The body is no longer held. */
  releaseBytes(): void {
    this.#take(-this.#bytes);
    this.#bytes = 0;
  }

  leave(): void {
    if (this.#left) return;
    this.#left = true;
    this.releaseBytes();
    this.#leave();
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
