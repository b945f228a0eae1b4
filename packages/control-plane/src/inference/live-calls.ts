import type { Duplex } from "node:stream";
import type { Clock } from "@fairlead/protocol/clock";
import type { DomainError } from "@fairlead/protocol/errors";

/** A running call, as far as it is looked after from outside. */
export interface LiveCall {
  /** Its place among the others; kept by `LiveCalls`. */
  place: number;
  /** The connection that its answer is written on. */
  readonly connection: Duplex | null;
  /** Looks at the time-outs. @param now monotonic milliseconds. */
  check(now: number): void;
  fail(error: DomainError): void;
}

/** Every call that is being answered: one timer for all, instead of several for each. */
export class LiveCalls {
  readonly #clock: Clock;
  /** An array: the tables that a Set outgrows would keep ended calls in memory until a full garbage collection. */
  readonly #calls: LiveCall[] = [];
  readonly #timer: NodeJS.Timeout;

  constructor(clock: Clock, sweepMs: number) {
    this.#clock = clock;
    this.#timer = setInterval(() => this.sweep(), sweepMs);
    this.#timer.unref();
  }

  add(call: LiveCall): void {
    call.place = this.#calls.push(call) - 1;
  }

  delete(call: LiveCall): void {
    if (this.#calls[call.place] !== call) return;
    const last = this.#calls.pop();
    if (last === undefined || last === call) return;
    last.place = call.place;
    this.#calls[call.place] = last;
  }

  sweep(): void {
    const now = this.#clock.monotonic();
    this.#each((call) => call.check(now));
  }

  /** Whether an answer is being written on this connection. */
  uses(connection: Duplex): boolean {
    return this.#calls.some((call) => call.connection === connection);
  }

  failAll(error: DomainError): void {
    this.#each((call) => call.fail(error));
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Backwards: a call that ends under it gives its place to the last one. */
  #each(visit: (call: LiveCall) => void): void {
    for (let at = this.#calls.length - 1; at >= 0; at--) {
      const call = this.#calls[at];
      if (call !== undefined) visit(call);
    }
  }
}
