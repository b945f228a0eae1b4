import type { Condition } from "@fairlead/protocol/conditions";
import type { Gpus } from "@fairlead/protocol/engine-config";
import type { DesiredState } from "@fairlead/protocol/workload";
import { type DiskSpace, isUnderPressure, sizeText, usedPercent } from "./disk-rules.ts";
import type { GpuReading } from "./gpus.ts";

/** Derives conditions from the machine's facts. Pure. */

/** Status of one condition. */
export type ConditionFinding = Pick<Condition, "status" | "reason" | "message">;

export const OK: ConditionFinding = { status: "ok", reason: "", message: "" };
const UNKNOWN: ConditionFinding = { status: "unknown", reason: "", message: "" };
const warning = (reason: string, message: string): ConditionFinding => ({ status: "warning", reason, message });
const problem = (reason: string, message: string): ConditionFinding => ({ status: "problem", reason, message });

/** Maximum number of workload names in a message. */
const MAX_NAMES = 10;

/** Half of the clock skew that tokens tolerate. */
const MAX_SKEW_MS = 30_000;

/** @param refusal the error of a rejected pull, or null. @param before whether the disk was under pressure. */
export function diskFinding(space: DiskSpace | null, refusal: string | null, before: boolean): ConditionFinding {
  if (refusal !== null) return problem("no_room", `could not pull an image: ${refusal}`);
  if (space === null) return { ...UNKNOWN, message: "cannot read the container engine's disk" };
  if (!isUnderPressure(space, before)) return OK;
  const used = Math.round(usedPercent(space));
  return problem("disk_pressure", `the disk is ${used} % full, ${sizeText(space.freeBytes)} free`);
}

/** @param skewMs how far this machine's clock is ahead; null before the first contact with the platform. */
export function clockFinding(skewMs: number | null): ConditionFinding {
  if (skewMs === null) return UNKNOWN;
  if (Math.abs(skewMs) <= MAX_SKEW_MS) return OK;
  const seconds = Math.round(Math.abs(skewMs) / 1000);
  return problem("clock_skew", `the clock is ${seconds} s ${skewMs > 0 ? "ahead of" : "behind"} the platform's`);
}

/** @param away why the container engine does not respond, or null. */
export function dockerFinding(away: string | null): ConditionFinding {
  return away === null ? OK : problem("unavailable", away);
}

/** A workload without a limit can use up the machine's memory and affect other workloads. */
export function memoryFinding(desired: DesiredState | null): ConditionFinding {
  const unlimited = (desired?.workloads ?? []).filter(({ resources }) => resources.memoryMb === undefined);
  if (unlimited.length === 0) return OK;
  const names = unlimited.map(({ name }) => name).toSorted();
  const rest = names.length - MAX_NAMES;
  const shown = names.slice(0, MAX_NAMES).join(", ") + (rest > 0 ? ` and ${rest} more` : "");
  return warning("no_memory_limit", `resources.memoryMb is not set for ${shown}`);
}

/** Only if a workload requests GPUs. */
export function gpuFinding(reading: GpuReading, desired: DesiredState | null): ConditionFinding {
  const wanted = (desired?.workloads ?? []).flatMap(({ resources: { gpus } }) => (gpus ? [gpus] : []));
  if (wanted.length === 0) return OK;
  if (reading.state === "absent")
    return problem("no_driver", "a workload requires GPUs, but nvidia-smi is not installed");
  if (reading.state === "broken") return problem("driver_failed", `nvidia-smi failed: ${reading.reason}`);
  const lack = wanted.map((gpus) => lackOf(gpus, reading)).find((text) => text !== null);
  return lack === undefined ? OK : problem("missing_gpus", lack);
}

function lackOf(gpus: Gpus, { gpus: present }: Extract<GpuReading, { state: "present" }>): string | null {
  if (Array.isArray(gpus)) {
    const known = new Set(present.flatMap(({ id }, index) => [id, String(index)]));
    const missing = gpus.filter((id) => !known.has(id) && !present.some((gpu) => gpu.id.startsWith(id)));
    return missing.length === 0 ? null : `a workload requires ${missing.join(", ")}, but there is no such GPU`;
  }
  const least = gpus === "all" ? 1 : gpus;
  return present.length >= least ? null : `a workload requires ${gpus} GPUs, but there are ${present.length}`;
}
