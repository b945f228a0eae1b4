import type { Clock } from "@fairlead/protocol/values/clock";
import type { OutgoingFetch } from "../../../installation/outgoing/outgoing-fetch.ts";
import { DockerMachines } from "../docker/docker-machines.ts";
import { HetznerMachines } from "../hetzner/hetzner-machines.ts";
import type { MachineProvider } from "../machine-provider.ts";
import type { ProvisioningSettings } from "./provisioning-settings.ts";

/** The providers that the settings enable. */
export function machineProviders(
  { hetzner, docker }: ProvisioningSettings,
  parts: { readonly installationId: string; readonly clock: Clock; readonly fetch: OutgoingFetch },
): readonly MachineProvider[] {
  return [
    new HetznerMachines({ ...hetzner, ...parts }),
    ...(docker.enabled ? [new DockerMachines({ ...docker, ...parts })] : []),
  ];
}
