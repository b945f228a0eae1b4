import { removeNetworkRules } from "../../packages/daemon/src/host/workload-networks.ts";
import { DockerRuntime } from "../../packages/daemon/src/runtime/docker/docker-runtime.ts";
import { docker } from "./docker.ts";

/** Removes the networks of a node and their rules, once its containers are gone. */
export async function removeNodeNetworks(nodeId: string, dockerSocket = "/var/run/docker.sock"): Promise<void> {
  const at = ["-H", `unix://${dockerSocket}`];
  const ids = await docker(...at, "network", "ls", "-q", "--filter", `label=dev.fairlead.node=${nodeId}`);
  for (const id of ids.split("\n").filter(Boolean)) await docker(...at, "network", "rm", id);
  await removeNetworkRules(new DockerRuntime(dockerSocket), { installationId: "", nodeId });
}
