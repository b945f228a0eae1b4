/** The outcome of a turn. A closed list, because it is a metric label. */
export type TurnOutcome = "completed" | "client_left" | "stopped" | "refused" | "failed" | "replayed" | "new_session";

/** Chat counters: plain numbers, rendered on each scrape. */
export class TurnCounters {
  running = 0;
  readonly #turns = new Map<TurnOutcome, number>();

  turns(): Iterable<readonly [TurnOutcome, number]> {
    return this.#turns;
  }

  ended(outcome: TurnOutcome): void {
    this.#turns.set(outcome, (this.#turns.get(outcome) ?? 0) + 1);
  }
}
