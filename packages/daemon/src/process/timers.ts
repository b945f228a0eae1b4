/** Timers that tests can replace. */
export interface Timers {
  /** Runs once after a delay in milliseconds. @returns a function that cancels it. */
  after(milliseconds: number, run: () => void): () => void;
}

export const systemTimers: Timers = {
  after: (milliseconds, run) => {
    const timer = setTimeout(run, milliseconds);
    return () => clearTimeout(timer);
  },
};

/** Waits; returns early without an error on abort. */
export function sleep(timers: Timers, milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) {
      resolve();
      return;
    }
    const done = (): void => {
      cancel();
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const cancel = timers.after(milliseconds, done);
    signal?.addEventListener("abort", done, { once: true });
  });
}
