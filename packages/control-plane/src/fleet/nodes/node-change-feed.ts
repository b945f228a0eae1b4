/** Notifies listeners, after the commit, that a node changed. Listeners must read the new state themselves. */

export type NodeAspect = "desired" | "status" | "report" | "removed";

export interface NodeChange {
  readonly nodeId: string;
  readonly projectId: string;
  readonly aspect: NodeAspect;
}

export class NodeChangeFeed {
  readonly #listeners = new Set<(change: NodeChange) => void>();

  emit(change: NodeChange): void {
    for (const listener of this.#listeners) listener(change);
  }

  /** @returns a function that removes the listener. */
  listen(listener: (change: NodeChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
