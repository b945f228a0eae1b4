import type { ContainerPlan, ContainerRuntime } from "../runtime/container-runtime.ts";
import { networkName } from "../runtime/ownership.ts";

/** Creates a container on its workload's network, like the reconcile loop. */
export async function createOnNetwork(
  runtime: Pick<ContainerRuntime, "addNetwork" | "create">,
  plan: ContainerPlan,
): Promise<string> {
  const { owner, spec } = plan;
  const { internet } = spec.network;
  const name = networkName(owner.nodeId, spec);
  await runtime.addNetwork({ name, owner, workloadId: spec.workloadId, internet });
  return runtime.create(plan);
}
