import type { Duplex } from "node:stream";
import type { Clock } from "@fairlead/protocol/clock";
import type { DomainError } from "@fairlead/protocol/errors";
import type { Relay } from "./relay.ts";

/** Every call that is being relayed: one timer for all, instead of several for each. */
export class LiveCalls {
  readonly #clock: Clock;
  readonly #relays = new Set<Relay>();
  readonly #timer: NodeJS.Timeout;

  constructor(clock: Clock, sweepMs: number) {
    this.#clock = clock;
    this.#timer = setInterval(() => this.sweep(), sweepMs);
    this.#timer.unref();
  }

  add(relay: Relay): void {
    this.#relays.add(relay);
  }

  delete(relay: Relay): void {
    this.#relays.delete(relay);
  }

  sweep(): void {
    const now = this.#clock.monotonic();
    for (const relay of this.#relays) relay.check(now);
  }

  /** Whether an answer is being written on this connection. */
  uses(socket: Duplex): boolean {
    for (const relay of this.#relays) if (relay.socket === socket) return true;
    return false;
  }

  failAll(error: DomainError): void {
    for (const relay of this.#relays) relay.fail(error);
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
