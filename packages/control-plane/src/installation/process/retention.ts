import type { Clock } from "@fairlead/protocol/values/clock";
import type { Logger } from "pino";

/** Rows with a limited retention time. */
export interface Retention {
  /** For the log. */
  readonly what: string;
  readonly everyMs: number;
  /** Removes at most `limit` rows. @returns the number removed. */
  removeSome(limit: number): Promise<number>;
}

const HOUR_MS = 3_600_000;

export interface Kept {
  readonly what: string;
  /** How long rows are kept after the time that `remove` compares. 0, the default, is for rows that expire at that time. */
  readonly days?: number;
  readonly everyMs?: number;
  readonly clock: Clock;
  /** Removes at most `limit` rows older than this time. */
  readonly remove: (before: number, limit: number) => Promise<number>;
}

/** Once an hour, unless stated otherwise. */
export function keptFor({ what, days = 0, everyMs = HOUR_MS, clock, remove }: Kept): Retention {
  return { what, everyMs, removeSome: (limit) => remove(clock.now() - days * 24 * HOUR_MS, limit) };
}

/** Keeps statements short, because writers wait for them. */
const CHUNK = 500;

/** Removes all expired rows in chunks. */
export async function removeExpired(retention: Pick<Retention, "removeSome">, stop?: AbortSignal): Promise<number> {
  let removed = 0;
  while (!stop?.aborted) {
    const chunk = await retention.removeSome(CHUNK);
    removed += chunk;
    if (chunk < CHUNK) break;
  }
  return removed;
}

/** Removes expired rows at the start and then periodically. @returns a function that stops it. */
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
