import type { Logger } from "pino";
import type { ProjectRemovalService } from "./project-removal-service.ts";

/** When a deletion that failed, of a store that was away say, is tried again. */
const AGAIN_MS = 10_000;

/**
 * Deletes projects for as long as the server runs: those that were left over at its start, and every other as soon as somebody asks.
 * Each by itself, since one may wait for its running calls. @returns the call that ends it; what is not over goes on at the next start.
 */
export function startProjectRemover(
  removal: Pick<ProjectRemovalService, "waiting" | "finish" | "onRequest">,
  log: Logger,
): () => Promise<void> {
  const stop = new AbortController();
  const running = new Map<string, Promise<void>>();
  const finish = async (projectId: string): Promise<void> => {
    try {
      await removal.finish(projectId, stop.signal);
      log.info({ projectId }, "project deleted");
    } catch (error) {
      if (!stop.signal.aborted) log.error({ projectId, err: error }, "project could not be deleted yet");
    } finally {
      running.delete(projectId);
    }
  };
  const look = async (): Promise<void> => {
    try {
      for (const id of await removal.waiting()) {
        if (!running.has(id) && !stop.signal.aborted) running.set(id, finish(id));
      }
    } catch (error) {
      log.error({ err: error }, "projects to delete could not be looked for");
    }
  };
  let looking = look();
  const lookAgain = (): void => {
    looking = looking.then(look);
  };
  const timer = setInterval(lookAgain, AGAIN_MS);
  timer.unref();
  const stopListening = removal.onRequest(lookAgain);
  return async () => {
    clearInterval(timer);
    stopListening();
    stop.abort();
    await looking;
    await Promise.all(running.values());
  };
}
