import type { Logger } from "pino";

/** Rows that are kept for a stated time only. */
export interface Retention {
  /** For the log. */
  readonly what: string;
  readonly everyMs: number;
  /** Removes at most `limit` rows. @returns how many. */
  removeSome(limit: number): Promise<number>;
}

/** So that no statement takes long: writers wait while one runs. */
const CHUNK = 500;

/** Removes all that has run out, in chunks. */
export async function removeExpired(retention: Pick<Retention, "removeSome">, stop?: AbortSignal): Promise<number> {
  let removed = 0;
  while (!stop?.aborted) {
    const chunk = await retention.removeSome(CHUNK);
    removed += chunk;
    if (chunk < CHUNK) break;
  }
  return removed;
}

/** Removes at the start and from then on as often as stated. @returns the call that ends it. */
export function startRetention(retention: Retention, log: Logger): () => Promise<void> {
  const { what, everyMs } = retention;
  const stop = new AbortController();
  const remove = async (): Promise<void> => {
    try {
      const removed = await removeExpired(retention, stop.signal);
      if (removed > 0) log.info({ what, removed }, "old rows removed");
    } catch (error) {
      log.error({ what, err: error }, "old rows could not be removed");
    }
  };
  let running = remove();
  const timer = setInterval(() => {
    running = running.then(remove);
  }, everyMs);
  timer.unref();
  return async () => {
    clearInterval(timer);
    stop.abort();
    await running;
  };
}
