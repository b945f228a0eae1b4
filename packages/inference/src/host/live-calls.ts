import type { Duplex } from "node:stream";
import { type Listed, Roster } from "@fairlead/hosting/requests/roster";
import type { DomainError } from "@fairlead/protocol/errors";
import type { Clock } from "@fairlead/protocol/values/clock";

/** A running call, as seen by the timeout checks. */
export interface LiveCall extends Listed {
  /** The connection that receives the response. */
  readonly connection: Duplex | null;
  /** Checks timeouts. @param now monotonic milliseconds. */
  check(now: number): void;
  fail(error: DomainError): void;
}

/** All running calls. One timer checks them all, instead of several per call. */
export class LiveCalls {
  readonly #clock: Clock;
  readonly #calls = new Roster<LiveCall>();
  readonly #timer: NodeJS.Timeout;

  constructor(clock: Clock, sweepMs: number) {
    this.#clock = clock;
    this.#timer = setInterval(() => this.sweep(), sweepMs);
    this.#timer.unref();
  }

  add(call: LiveCall): void {
    this.#calls.add(call);
  }

  delete(call: LiveCall): void {
    this.#calls.delete(call);
  }

  sweep(): void {
    const now = this.#clock.monotonic();
    this.#calls.each((call) => call.check(now));
  }

  /** Whether a response is being written to this connection. */
  uses(connection: Duplex): boolean {
    return this.#calls.some((call) => call.connection === connection);
  }

  failAll(error: DomainError): void {
    this.#calls.each((call) => call.fail(error));
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
