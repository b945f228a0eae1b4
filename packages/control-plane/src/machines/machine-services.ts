import type { Clock } from "@fairlead/protocol/clock";
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import type { AuditService } from "../audit/audit-service.ts";
import type { ProjectAccess } from "../auth/access.ts";
import type { SecretSealer } from "../auth/sealer.ts";
import type { Database } from "../db/schema.ts";
import type { NodeMachineService } from "../nodes/node-machine-service.ts";
import { HETZNER_CATALOGUE } from "../plans/hetzner-catalogue.ts";
import { PlanService } from "../plans/plan-service.ts";
import { DockerMachines } from "./docker-machines.ts";
import { HetznerMachines } from "./hetzner-machines.ts";
import { MachineOrderService } from "./machine-order-service.ts";
import type { MachineProvider } from "./machine-provider.ts";
import { MachineSecrets } from "./machine-secrets.ts";
import { MachineStore } from "./machine-store.ts";
import { MachineSweepService } from "./machine-sweep-service.ts";
import { ProvisioningService } from "./provisioning-service.ts";
import type { ProvisioningOptions, ProvisioningSettings } from "./provisioning-settings.ts";

/** Composition: what rents machines for nodes, on its stores and its providers. */

export interface MachineOrdersDeps {
  readonly db: Kysely<Database>;
  readonly providers: readonly MachineProvider[];
  readonly sealer: SecretSealer;
  readonly clock: Clock;
  readonly publicUrl: string;
  readonly options: ProvisioningOptions;
}

/** What nodes need before they are there themselves. */
export interface MachineOrders {
  readonly orders: MachineOrderService;
  readonly plans: PlanService;
  readonly machines: MachineStore;
  readonly secrets: MachineSecrets;
}

export function createMachineOrders(deps: MachineOrdersDeps): MachineOrders {
  const catalogues = [HETZNER_CATALOGUE].filter(({ provider }) => deps.providers.some(({ name }) => name === provider));
  const providers = byName(deps.providers);
  const plans = new PlanService({ providers, catalogues, clock: deps.clock });
  const machines = new MachineStore(deps.db);
  const secrets = new MachineSecrets(deps.sealer);
  return {
    plans,
    machines,
    secrets,
    orders: new MachineOrderService({ ...deps, machines, machinesOn, plans, secrets }),
  };
}

export interface MachineServicesDeps extends MachineOrdersDeps, Omit<MachineOrders, "orders"> {
  readonly nodes: NodeMachineService;
  readonly access: ProjectAccess;
  readonly audit: AuditService;
  readonly log: Logger;
}

export interface MachineServices {
  readonly provisioning: ProvisioningService;
  readonly sweeps: MachineSweepService;
}

export function createMachineServices(deps: MachineServicesDeps): MachineServices {
  const providers = byName(deps.providers);
  return {
    provisioning: new ProvisioningService({ ...deps, machinesOn, providers }),
    sweeps: new MachineSweepService({ ...deps, providers }),
  };
}

/** Those that this server is set to offer. */
export function machineProviders(
  { hetzner, docker }: ProvisioningSettings,
  parts: { readonly installationId: string; readonly clock: Clock },
): readonly MachineProvider[] {
  return [
    new HetznerMachines({ ...hetzner, ...parts }),
    ...(docker.enabled ? [new DockerMachines({ ...docker, ...parts })] : []),
  ];
}

function machinesOn(transaction: Kysely<Database>): MachineStore {
  return new MachineStore(transaction);
}

function byName(providers: readonly MachineProvider[]): ReadonlyMap<string, MachineProvider> {
  return new Map(providers.map((provider) => [provider.name, provider]));
}
