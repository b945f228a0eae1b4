import type { Clock } from "@fairlead/protocol/clock";
import type { Logger } from "pino";
import type { NodeEventStore } from "./node-event-store.ts";

const KEEP_MS = 90 * 24 * 3_600_000;
const EVERY_MS = 3_600_000;
const CHUNK = 500;

/** Removes node events older than 90 days. @param events on the store's handle for long work. */
export async function pruneNodeEvents(events: NodeEventStore, now: number, stop?: AbortSignal): Promise<number> {
  let removed = 0;
  while (!stop?.aborted) {
    const chunk = await events.deleteBefore(now - KEEP_MS, CHUNK);
    removed += chunk;
    if (chunk < CHUNK) break;
  }
  return removed;
}

/** Prunes at the start and every hour from then on. @returns the call that ends it. */
export function startNodeEventRetention(events: NodeEventStore, clock: Clock, log: Logger): () => Promise<void> {
  const stop = new AbortController();
  const prune = async (): Promise<void> => {
    try {
      const removed = await pruneNodeEvents(events, clock.now(), stop.signal);
      if (removed > 0) log.info({ removed }, "old node events removed");
    } catch (error) {
      log.error({ err: error }, "old node events could not be removed");
    }
  };
  let running = prune();
  const timer = setInterval(() => {
    running = running.then(prune);
  }, EVERY_MS);
  timer.unref();
  return async () => {
    clearInterval(timer);
    stop.abort();
    await running;
  };
}
