import { readFileSync } from "node:fs";

const NANOSECONDS = 1e6;

/**
 * How long a process's main thread was ready to run and the machine gave it no turn. Source: the second figure of
 * `/proc/PID/task/PID/schedstat`. @returns milliseconds since the process began; 0 where the system does not count them.
 */
export function turnWaitMs(pid: number): number {
  try {
    const [, waited = "0"] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "utf8").split(" ");
    return Number(waited) / NANOSECONDS;
  } catch {
    return 0;
  }
}
