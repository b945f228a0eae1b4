import type { Clock } from "@fairlead/protocol/clock";
import type { SessionRemovalStore } from "./session-removal-store.ts";
import { KEEP_MS } from "./turn-begin.ts";

export interface SessionRemovalDeps {
  /** On a handle whose statements hold nobody up. */
  readonly store: SessionRemovalStore;
  readonly clock: Clock;
}

/** Rows that one statement removes. */
const PORTION = 200;
const SESSIONS = 20;

/** Takes the rows of sessions away that are marked as deleted; one that breaks off goes on from the marks. */
export class SessionRemovalService {
  readonly #deps: SessionRemovalDeps;

  constructor(deps: SessionRemovalDeps) {
    this.#deps = deps;
  }

  /** @param id of one that is marked. @returns how many rows went. */
  async removeSession(id: string): Promise<number> {
    const { store } = this.#deps;
    let removed = 0;
    for (const step of [store.deleteItems.bind(store), store.deleteTurns.bind(store)]) {
      for (let portion = PORTION; portion === PORTION; removed += portion) portion = await step(id, PORTION);
    }
    await store.deleteSession(id);
    return removed + 1;
  }

  /** Of a project that is being deleted. */
  async removeAll(projectId: string, stop: AbortSignal): Promise<void> {
    const { store, clock } = this.#deps;
    await store.markAllOf(projectId, clock.now());
    for (;;) {
      const ids = await store.listMarked(SESSIONS, projectId);
      for (const id of ids) {
        stop.throwIfAborted();
        await this.removeSession(id);
      }
      if (ids.length < SESSIONS) return;
    }
  }

  /** Marked ones of every project. @returns how many rows went: fewer than the limit when there are no more. */
  async removeMarked(limit: number): Promise<number> {
    let removed = 0;
    while (removed < limit) {
      const ids = await this.#deps.store.listMarked(SESSIONS);
      for (const id of ids) removed += await this.removeSession(id);
      if (ids.length < SESSIONS) break;
    }
    return removed;
  }

  /** Those in which nothing was said since then, too. @returns as `removeMarked`. */
  async removeQuiet(before: number, limit: number): Promise<number> {
    const { store, clock } = this.#deps;
    let removed = 0;
    while (removed < limit) {
      const marked = await store.markQuiet({ before, at: clock.now(), limit: SESSIONS });
      removed += await this.removeMarked(limit - removed);
      if (marked < SESSIONS) break;
    }
    return removed;
  }

  /** Answers that no repeat is given any more. @returns how many. */
  async forgetAnswers(limit: number): Promise<number> {
    const { store, clock } = this.#deps;
    return await store.forgetAnswers(clock.now() - KEEP_MS, limit);
  }
}
