import { keyOfSecret } from "@fairlead/protocol/secrets";
import type { WorkloadSpec } from "@fairlead/protocol/workload";

/** `unhealthy` counts as a failed run; the others are wanted ends. */
export type StopReason = "unhealthy" | "superseded" | "rolled-back" | "orphan";

interface OnContainer {
  readonly workloadId: string;
  readonly containerId: string;
  readonly name: string;
}

/** Everything that the daemon ever does to the container engine. A step is data: the plan makes every choice. */
export type Step =
  | { readonly type: "pull"; readonly workloadId: string; readonly image: string; readonly spec: WorkloadSpec }
  | {
      readonly type: "create";
      readonly workloadId: string;
      readonly name: string;
      readonly spec: WorkloadSpec;
      readonly projectId: string;
      readonly generation: number;
    }
  | (OnContainer & { readonly type: "start" })
  | (OnContainer & { readonly type: "stop"; readonly reason: StopReason })
  | (OnContainer & { readonly type: "remove" });

export function describe(step: Step): string {
  switch (step.type) {
    case "pull":
      return `pull ${step.image}`;
    case "create":
      return `create ${step.name} from ${step.spec.image}`;
    case "start":
      return `start ${step.name}`;
    case "stop":
      return `stop ${step.name} (${step.reason})`;
    case "remove":
      return `remove ${step.name}`;
  }
}

/** Steps with one key exclude each other: one change at a time per workload; a pull runs beside them. */
export function keyOf(step: Step): string {
  return step.type === "pull" ? pullKeyOf(step.spec) : `workload ${step.workloadId}`;
}

/** Workloads of one image wait for the same pull, but not for one whose login is another: it may be wrong. */
export function pullKeyOf({ image, secrets = [] }: WorkloadSpec): string {
  const login = secrets.find(({ as }) => as === "registry");
  return login === undefined ? `pull ${image}` : `pull ${image} as ${keyOfSecret(login)}`;
}
