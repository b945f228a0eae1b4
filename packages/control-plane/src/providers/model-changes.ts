/** Tells who listens that what a project's models are has changed, after the commit. Not a source of truth: every listener re-reads. */
export class ModelChanges {
  readonly #listeners = new Set<(projectId: string) => void>();

  emit(projectId: string): void {
    for (const listener of this.#listeners) listener(projectId);
  }

  listen(listener: (projectId: string) => void): void {
    this.#listeners.add(listener);
  }
}
