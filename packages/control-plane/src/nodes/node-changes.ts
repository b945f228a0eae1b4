/** Tells who listens that a node changed, after the change is committed. Not a source of truth: every listener re-reads. */

export type NodeAspect = "desired" | "status" | "report" | "removed";

export interface NodeChange {
  readonly nodeId: string;
  readonly projectId: string;
  readonly aspect: NodeAspect;
}

export class NodeChanges {
  readonly #listeners = new Set<(change: NodeChange) => void>();

  emit(change: NodeChange): void {
    for (const listener of this.#listeners) listener(change);
  }

  /** @returns the call that ends it. */
  listen(listener: (change: NodeChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
