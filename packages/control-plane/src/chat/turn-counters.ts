/** What became of a turn; a closed list, since metrics have it for a label. */
export type TurnOutcome = "completed" | "client_left" | "stopped" | "refused" | "failed" | "replayed" | "new_session";

/** What the chat counts: plain numbers, rendered when somebody asks. */
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
