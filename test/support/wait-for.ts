import { setTimeout as sleep } from "node:timers/promises";

const POLL_MS = 100;

/**
 * Asks again until the answer is neither undefined, false nor an error.
 * @throws after `timeoutMs`, naming what was waited for and the last error.
 */
export async function waitFor<T>(
  what: string,
  timeoutMs: number,
  ask: () => Promise<T | undefined | false>,
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  let last: unknown = "no answer yet";
  while (performance.now() < deadline) {
    try {
      const answer = await ask();
      if (answer !== undefined && answer !== false) return answer;
    } catch (error) {
      last = error;
    }
    await sleep(POLL_MS);
  }
  throw new Error(`gave up waiting for ${what} after ${timeoutMs} ms`, { cause: last });
}
