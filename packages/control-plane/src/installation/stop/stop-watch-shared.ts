/** Shared by the main thread and its watchdog thread: two numbers and the limit. */

/** Increases while the event loop runs. */
export const BEAT = 0;
/** Milliseconds between the stop request and the main thread noticing it; `UNSET` until then. */
export const STOPPING_FOR_MS = 1;
export const UNSET = -1;
/** Time limit for the shutdown steps after running calls ended. */
export const GRACE_MS = 5000;

export interface StopWatchData {
  readonly shared: Int32Array<SharedArrayBuffer>;
  readonly boundMs: number;
}
