import type { Clock } from "@fairlead/protocol/values/clock";
import { TURN_KEY_KEEP_MS } from "../store/turn-begin.ts";
import type { SessionRemovalStore } from "./session-removal-store.ts";

export interface SessionRemovalDeps {
  /** On a handle whose statements block no one. */
  readonly store: SessionRemovalStore;
  readonly clock: Clock;
}

/** Rows deleted per statement. */
const PORTION = 200;
const SESSIONS = 20;

/** Deletes the rows of sessions marked as deleted; resumes from the marks after an interruption. */
export class SessionRemovalService {
  readonly #deps: SessionRemovalDeps;

  constructor(deps: SessionRemovalDeps) {
    this.#deps = deps;
  }

  /** @param id of a marked session. @returns the number of rows deleted. */
  async removeSession(id: string): Promise<number> {
    const { store } = this.#deps;
    let removed = 0;
    for (const step of [store.deleteItems.bind(store), store.deleteTurns.bind(store)]) {
      for (let portion = PORTION; portion === PORTION; removed += portion) portion = await step(id, PORTION);
    }
    await store.deleteSession(id);
    return removed + 1;
  }

  /** For a project that is being deleted. */
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

  /** Deletes marked sessions of all projects. @returns the number of rows deleted; less than the limit if none are left. */
  async removeMarked(limit: number): Promise<number> {
    let removed = 0;
    while (removed < limit) {
      const ids = await this.#deps.store.listMarked(SESSIONS);
      for (const id of ids) removed += await this.removeSession(id);
      if (ids.length < SESSIONS) break;
    }
    return removed;
  }

  /** Also deletes sessions without activity since then. @returns as `removeMarked`. */
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

  /** Clears responses whose retry period is over. @returns the number cleared. */
  async forgetAnswers(limit: number): Promise<number> {
    const { store, clock } = this.#deps;
    return await store.forgetAnswers(clock.now() - TURN_KEY_KEEP_MS, limit);
  }
}
