/** Tells who listens that an agent changed or went, after the change is committed. Not a source of truth: every listener re-reads. */

export interface AgentChange {
  readonly agentId: string;
  readonly projectId: string;
}

export class AgentChanges {
  readonly #listeners = new Set<(change: AgentChange) => void>();

  emit(change: AgentChange): void {
    for (const listener of this.#listeners) listener(change);
  }

  /** @returns the call that ends it. */
  listen(listener: (change: AgentChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
