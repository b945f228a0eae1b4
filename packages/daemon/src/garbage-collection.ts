import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/**
 * Lets V8 weigh Buffers together with its heap. By itself it marks the whole heap for every 64 MB of them, which was 60 % of the CPU
 * of large bodies (docs/performance.md). For the whole process: call it once, where the process starts.
 */
export function weighBuffersWithHeap(): void {
  setFlagsFromString("--external-memory-accounted-in-global-limit");
}

const BYTES_BETWEEN_COLLECTIONS = 16_000_000;

/**
 * Frees Buffers of bodies that pass through, by collections of the youngest objects alone, about a millisecond each. The daemon's heap is
 * small, so that V8 by itself marks all of it for every 30 MB of them, on both cores.
 * @returns to be called with the bytes of every piece
 */
export function collectPassingBuffers(): (bytes: number) => void {
  setFlagsFromString("--expose-gc");
  const collect: unknown = runInNewContext("gc");
  if (typeof collect !== "function") return () => undefined;
  let passed = 0;
  return (bytes) => {
    passed += bytes;
    if (passed < BYTES_BETWEEN_COLLECTIONS) return;
    passed = 0;
    collect({ type: "minor" });
  };
}
