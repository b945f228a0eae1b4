import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { Timers } from "../process/timers.ts";

interface Pending {
  readonly at: number;
  readonly run: () => void;
}

/** A clock and timers controlled by the test. */
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

  /** Advances time, runs due timers in order and lets promises settle in between. */
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

/** Lets resolved promises settle. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await nextTurn();
}

/** Waits until a condition holds, without advancing the fake time. */
export async function eventually(holds: () => boolean): Promise<void> {
  for (let turn = 0; !holds(); turn++) {
    if (turn > 10_000) throw new Error("it never came to hold");
    await nextTurn();
  }
}
