/** Notifies listeners, after the commit, that a project's models changed. Listeners must read the new state themselves. */
export class ModelChanges {
  readonly #listeners = new Set<(projectId: string) => void>();

  emit(projectId: string): void {
    for (const listener of this.#listeners) listener(projectId);
  }

  listen(listener: (projectId: string) => void): void {
    this.#listeners.add(listener);
  }
}
