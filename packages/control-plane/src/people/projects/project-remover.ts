import type { Logger } from "pino";
import type { ProjectRemovalService } from "./project-removal-service.ts";

/** Retry delay of a failed deletion. */
const AGAIN_MS = 10_000;

/**
 * Deletes projects in the background, starting with those left over at the start. Independently of one another, because one may wait for
 * running calls. @returns a function that stops it; unfinished deletions continue at the next start.
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
      if (!stop.signal.aborted) log.error({ projectId, err: error }, "a project could not be deleted yet");
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
      log.error({ err: error }, "looking for projects to delete failed");
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
