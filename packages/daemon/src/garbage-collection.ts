import { setFlagsFromString } from "node:v8";

/** With a fourth of it, one run in three still marked as often as without. */
const BALLAST_BYTES = 256 * 1024 * 1024;

const kept: ArrayBuffer[] = [];

/**
 * Lets V8 weigh Buffers together with its heap. By itself it marks the whole heap for every 64 MB of them, which was 60 % of the CPU
 * of large bodies. How much may come before the next marking goes by what lived through the last one, and in a daemon that is so
 * little that it still marked for every 30 MB: the ballast makes it more. It is never touched, so that it takes no memory
 * (docs/performance.md). For the whole process: call it once, where the process starts.
 */
export function weighBuffersWithHeap(): void {
  setFlagsFromString("--external-memory-accounted-in-global-limit");
  if (kept.length === 0) kept.push(new ArrayBuffer(BALLAST_BYTES));
}
