import { exitedText } from "./exit-words.ts";
import type { RunRecord, RunRecords } from "./run-record.ts";
import type { Step, StopReason } from "./steps.ts";

/** Event messages for finished steps. Pure. */

export interface StepEvent {
  readonly kind: string;
  readonly message: string;
}

/** @param record of the step's container when the step started. */
export function eventOf(step: Step, record: RunRecord): StepEvent {
  switch (step.type) {
    case "pull":
      return { kind: "image_pulled", message: `pulled ${step.image}` };
    case "add-network":
      return { kind: "network_added", message: `created network ${step.network}` };
    case "remove-network":
      return { kind: "network_removed", message: `removed network ${step.network}` };
    case "create":
      return { kind: "container_created", message: `created ${step.name} from ${step.spec.image}` };
    case "start":
      return { kind: "workload_started", message: `started ${step.name}${whyAgain(record)}` };
    case "stop":
      return { kind: "workload_stopped", message: `stopped ${step.name}: ${whyStopped(step.reason, record)}` };
    case "remove":
      return { kind: "container_removed", message: `removed ${step.name}` };
  }
}

function whyAgain({ lastExit, failures }: RunRecord): string {
  return lastExit === null || failures === 0 ? "" : ` again; the last run ${exitedText(lastExit.reason)}`;
}

const WHY: Readonly<Record<Exclude<StopReason, "unhealthy">, string>> = {
  superseded: "replaced by another container of the workload",
  "rolled-back": "the update was rolled back",
  orphan: "no longer wanted",
};

function whyStopped(reason: StopReason, { stopping }: RunRecord): string {
  return reason === "unhealthy" ? (stopping?.detail ?? "unhealthy") : WHY[reason];
}

/** @returns the names of containers that became ready. */
export function newlyReady(before: RunRecords, after: RunRecords): string[] {
  return [...after]
    .filter(([name, { readySince }]) => readySince !== null && (before.get(name)?.readySince ?? null) === null)
    .map(([name]) => name);
}
