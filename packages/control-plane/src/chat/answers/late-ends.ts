import type { TurnEnd, TurnLog } from "../store/turn-log.ts";

/** First retry delay in milliseconds; doubles up to the maximum. */
const FIRST_MS = 250;
const LONGEST_MS = 10_000;

/** Ends of turns that could not be stored yet. Their sessions stay busy until they are. */
export class LateEnds {
  readonly #turns: Pick<TurnLog, "finish">;
  readonly #timers = new Map<string, NodeJS.Timeout>();

  constructor(turns: Pick<TurnLog, "finish">) {
    this.#turns = turns;
  }

  add(turnId: string, end: TurnEnd, waitMs = FIRST_MS): void {
    const timer = setTimeout(() => void this.#try(turnId, end, waitMs), waitMs);
    timer.unref();
    this.#timers.set(turnId, timer);
  }

  /** The rest is closed on the next start. */
  close(): void {
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
  }

  async #try(turnId: string, end: TurnEnd, waitMs: number): Promise<void> {
    this.#timers.delete(turnId);
    try {
      await this.#turns.finish(turnId, end);
    } catch {
      this.add(turnId, end, Math.min(2 * waitMs, LONGEST_MS));
    }
  }
}
