import type { Condition } from "@fairlead/protocol/conditions";
import type { Gpus } from "@fairlead/protocol/engine-config";
import type { DesiredState } from "@fairlead/protocol/workload";
import { type DiskSpace, isUnderPressure, sizeText, usedPercent } from "./disk-rules.ts";
import type { GpuReading } from "./gpus.ts";

/** What the machine's facts mean. Pure. */

/** What a room finds of its part of the machine. */
export type Finding = Pick<Condition, "status" | "reason" | "message">;

export const OK: Finding = { status: "ok", reason: "", message: "" };
const UNKNOWN: Finding = { status: "unknown", reason: "", message: "" };
const problem = (reason: string, message: string): Finding => ({ status: "problem", reason, message });

/** Half of what tokens allow both ways (design §5). */
const MAX_SKEW_MS = 30_000;

/** @param refusal what a refused pull was told, or null. @param before whether it was under pressure. */
export function diskFinding(space: DiskSpace | null, refusal: string | null, before: boolean): Finding {
  if (refusal !== null) return problem("no_room", `an image was not pulled: ${refusal}`);
  if (space === null) return { ...UNKNOWN, message: "the container engine's disk cannot be read" };
  if (!isUnderPressure(space, before)) return OK;
  const used = Math.round(usedPercent(space));
  return problem("disk_pressure", `the disk is ${used} % full, ${sizeText(space.freeBytes)} are free`);
}

/** @param skewMs by which this machine's clock is ahead; null while the platform host has not been heard. */
export function clockFinding(skewMs: number | null): Finding {
  if (skewMs === null) return UNKNOWN;
  if (Math.abs(skewMs) <= MAX_SKEW_MS) return OK;
  const seconds = Math.round(Math.abs(skewMs) / 1000);
  return problem("clock_skew", `the clock is ${seconds} s ${skewMs > 0 ? "ahead of" : "behind"} the platform's`);
}

/** @param away why the container engine cannot be asked, or null. */
export function dockerFinding(away: string | null): Finding {
  return away === null ? OK : problem("unavailable", away);
}

/** Of interest only where a workload asks for GPUs. */
export function gpuFinding(reading: GpuReading, desired: DesiredState | null): Finding {
  const wanted = (desired?.workloads ?? []).flatMap(({ resources: { gpus } }) => (gpus ? [gpus] : []));
  if (wanted.length === 0) return OK;
  if (reading.state === "absent") return problem("no_driver", "a workload asks for GPUs, but there is no nvidia-smi");
  if (reading.state === "broken") return problem("driver_failed", `nvidia-smi failed: ${reading.reason}`);
  const lack = wanted.map((gpus) => lackOf(gpus, reading)).find((text) => text !== null);
  return lack === undefined ? OK : problem("missing_gpus", lack);
}

function lackOf(gpus: Gpus, { gpus: present }: Extract<GpuReading, { state: "present" }>): string | null {
  if (Array.isArray(gpus)) {
    const known = new Set(present.flatMap(({ id }, index) => [id, String(index)]));
    const missing = gpus.filter((id) => !known.has(id) && !present.some((gpu) => gpu.id.startsWith(id)));
    return missing.length === 0 ? null : `a workload asks for ${missing.join(", ")}, and there is no such GPU`;
  }
  const least = gpus === "all" ? 1 : gpus;
  return present.length >= least ? null : `a workload asks for ${gpus} GPUs, and there are ${present.length}`;
}
