import { setFlagsFromString } from "node:v8";

/**
 * Lets V8 weigh Buffers together with its heap. By itself it marks the whole heap for every 64 MB of them, which was 60 % of the CPU
 * of large bodies (docs/performance.md). For the whole process: call it once, where the process starts.
 */
export function weighBuffersWithHeap(): void {
  setFlagsFromString("--external-memory-accounted-in-global-limit");
}
