import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock } from "@fairlead/protocol/clock";
import type { Timers } from "../timers.ts";

interface Pending {
  readonly at: number;
  readonly run: () => void;
}

/** A clock and its timers that move only when told to. */
export class FakeTime implements Clock, Timers {
  #monotonic = 0;
  #pending: Pending[] = [];
  /** Unix milliseconds at monotonic zero; set it to make the wall clock jump. */
  epoch = Date.UTC(2026, 0, 1);

  now(): number {
    return this.epoch + this.#monotonic;
  }

  monotonic(): number {
    return this.#monotonic;
  }

  after(milliseconds: number, run: () => void): () => void {
    const pending = { at: this.#monotonic + Math.max(0, milliseconds), run };
    this.#pending.push(pending);
    return () => {
      this.#pending = this.#pending.filter((other) => other !== pending);
    };
  }

  /** Moves time on, running what falls due in order and letting promises settle in between. */
  async advance(milliseconds: number): Promise<void> {
    const end = this.#monotonic + milliseconds;
    await settle();
    for (let due = this.#next(end); due; due = this.#next(end)) {
      this.#monotonic = Math.max(this.#monotonic, due.at);
      this.#pending = this.#pending.filter((other) => other !== due);
      due.run();
      await settle();
    }
    this.#monotonic = end;
    await settle();
  }

  #next(end: number): Pending | undefined {
    return this.#pending.filter((pending) => pending.at <= end).toSorted((a, b) => a.at - b.at)[0];
  }
}

/** Lets everything that is already resolved run its course. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await nextTurn();
}

/** Waits, without moving the fake time, until something holds. */
export async function eventually(holds: () => boolean): Promise<void> {
  for (let turn = 0; !holds(); turn++) {
    if (turn > 10_000) throw new Error("it never came to hold");
    await nextTurn();
  }
}
