/** Notifies listeners, after the commit, that an agent changed or was deleted. Listeners must read the new state themselves. */

export interface AgentChange {
  readonly agentId: string;
  readonly projectId: string;
}

export class AgentChangeFeed {
  readonly #listeners = new Set<(change: AgentChange) => void>();

  emit(change: AgentChange): void {
    for (const listener of this.#listeners) listener(change);
  }

  /** @returns a function that removes the listener. */
  listen(listener: (change: AgentChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
