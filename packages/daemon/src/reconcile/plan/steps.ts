import { keyOfSecret } from "@fairlead/protocol/secrets";
import type { WorkloadSpec } from "@fairlead/protocol/workload";

/** `unhealthy` counts as a failed run; the others are intended stops. */
export type StopReason = "unhealthy" | "superseded" | "rolled-back" | "orphan";

interface OnContainer {
  readonly workloadId: string;
  readonly containerId: string;
  readonly name: string;
}

interface OnNetwork {
  readonly workloadId: string;
  readonly network: string;
}

/** All changes that the daemon makes to the container engine, as data. */
export type Step =
  | { readonly type: "pull"; readonly workloadId: string; readonly image: string; readonly spec: WorkloadSpec }
  | (OnNetwork & { readonly type: "add-network"; readonly internet: boolean })
  | (OnNetwork & { readonly type: "remove-network"; readonly networkId: string })
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
    case "add-network":
      return `create network ${step.network}`;
    case "remove-network":
      return `remove network ${step.network}`;
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

/** Steps with the same key run one at a time: one change per workload; pulls are separate. */
export function keyOf(step: Step): string {
  return step.type === "pull" ? pullKeyOf(step.spec) : `workload ${step.workloadId}`;
}

/** Workloads share a pull of the same image, unless their logins differ. */
export function pullKeyOf({ image, secrets = [] }: WorkloadSpec): string {
  const login = secrets.find(({ as }) => as === "registry");
  return login === undefined ? `pull ${image}` : `pull ${image} as ${keyOfSecret(login)}`;
}
