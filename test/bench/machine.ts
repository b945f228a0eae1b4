import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** What Linux tells of its processes, for checks that nothing else used the machine during a run. */

/** Of `/proc`; 100 on every Linux that matters here. */
const TICKS_PER_SECOND = 100;

/** Below this many busy cores the machine counts as idle. */
const IDLE_CORES = 0.08;
const LOOK_MS = 300;

/** A process and all below it. */
export function processTree(pid: number): number[] {
  const children = read(`/proc/${pid}/task/${pid}/children`).split(" ").filter(Boolean).map(Number);
  return [pid, ...children.flatMap(processTree)];
}

/** CPU seconds used so far by every process but these, ended children of the living included. */
export function foreignCpuSeconds(ours: ReadonlySet<number>): number {
  const foreign = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && !ours.has(Number(name)));
  return foreign.reduce((sum, pid) => sum + cpuTicks(pid), 0) / TICKS_PER_SECOND;
}

/** `man 5 proc`: utime, stime, cutime and cstime are fields 14 to 17; the name before them may hold anything. */
function cpuTicks(pid: string): number {
  const fields = read(`/proc/${pid}/stat`).split(") ").at(-1)?.split(" ") ?? [];
  return fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
}

/** Waits until the machine is idle, but not longer than this. */
export async function untilQuiet(patienceMs: number): Promise<void> {
  const deadline = performance.now() + patienceMs;
  while (performance.now() < deadline) {
    const before = busySeconds();
    const started = performance.now();
    await sleep(LOOK_MS);
    const elapsedSeconds = (performance.now() - started) / 1000;
    if ((busySeconds() - before) / elapsedSeconds < IDLE_CORES) return;
  }
}

/** All cores together: user, nice, system, irq, softirq, steal. */
function busySeconds(): number {
  const [, user, nice, system, , , irq, softirq, steal] = read("/proc/stat").split("\n")[0]?.split(/\s+/) ?? [];
  return [user, nice, system, irq, softirq, steal].reduce((sum, ticks) => sum + Number(ticks), 0) / TICKS_PER_SECOND;
}

/** @returns "" for what is gone meanwhile. */
function read(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}

/** What a process holds of memory just now. */
export function memoryMb(pid: number): number {
  const [, kilobytes = "0"] = /VmRSS:\s+(\d+)/.exec(read(`/proc/${pid}/status`)) ?? [];
  return (Number(kilobytes) * 1024) / 1e6;
}

/** What it has used of the processor. */
export function cpuSeconds(pid: number): number {
  return cpuTicks(String(pid)) / TICKS_PER_SECOND;
}
