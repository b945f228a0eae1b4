import { setFlagsFromString } from "node:v8";

/** With a quarter of it, one run in three still marked as often as without. */
const BALLAST_BYTES = 256 * 1024 * 1024;

const kept: ArrayBuffer[] = [];

/**
 * Makes V8 count Buffers together with its heap. By default it marks the whole heap for every 64 MB of Buffers, which was 60 % of the
 * CPU time of large bodies. The next marking depends on how much survived the last one, which in a daemon is so
 * little that it still marked every 30 MB. The ballast raises that. It is never touched, so it takes no memory
 * (docs/performance.md). Affects the whole process: call it once at startup.
 */
export function weighBuffersWithBallast(): void {
  setFlagsFromString("--external-memory-accounted-in-global-limit");
  if (kept.length === 0) kept.push(new ArrayBuffer(BALLAST_BYTES));
}
