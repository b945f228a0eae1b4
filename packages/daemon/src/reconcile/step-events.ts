import type { RunRecord, RunRecords } from "./run-record.ts";
import type { Step, StopReason } from "./steps.ts";

/** What is told of a step that was done, in words for people: what happened to the workload, and why. Pure. */

export interface StepEvent {
  readonly kind: string;
  readonly message: string;
}

/** @param record of the container that the step was about, as it was when the step began. */
export function eventOf(step: Step, record: RunRecord): StepEvent {
  switch (step.type) {
    case "pull":
      return { kind: "image_pulled", message: `pulled ${step.image}` };
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
  return lastExit === null || failures === 0 ? "" : ` again: its last run ended: ${lastExit.reason}`;
}

const WHY: Readonly<Record<Exclude<StopReason, "unhealthy">, string>> = {
  superseded: "another container of the workload takes its place",
  "rolled-back": "its update is rolled back",
  orphan: "nothing asks for it any more",
};

function whyStopped(reason: StopReason, { stopping }: RunRecord): string {
  return reason === "unhealthy" ? (stopping?.detail ?? "unhealthy") : WHY[reason];
}

/** @returns the names of containers that have become ready. */
export function newlyReady(before: RunRecords, after: RunRecords): string[] {
  return [...after]
    .filter(([name, { readySince }]) => readySince !== null && (before.get(name)?.readySince ?? null) === null)
    .map(([name]) => name);
}
