import type { Clock } from "@fairlead/protocol/values/clock";
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import type { AuditService } from "../../access/audit/audit-service.ts";
import type { ProjectAccess } from "../../access/auth/access.ts";
import type { SecretSealer } from "../../access/auth/sealing/sealer.ts";
import type { Database } from "../../installation/db/tables/schema.ts";
import type { NodeMachineService } from "../nodes/actions/node-machine-service.ts";
import { MachineOrderService } from "./machine-order-service.ts";
import type { MachineProvider } from "./machine-provider.ts";
import { MachineSecrets } from "./machine-secrets.ts";
import { MachineStore } from "./machine-store.ts";
import { MachineSweepService } from "./machine-sweep-service.ts";
import { HETZNER_CATALOGUE } from "./plans/hetzner-catalogue.ts";
import { PlanService } from "./plans/plan-service.ts";
import { ProvisioningService } from "./provisioning/provisioning-service.ts";
import type { ProvisioningOptions } from "./provisioning/provisioning-settings.ts";

/** What rents machines for nodes, on its stores and its providers. */

export interface MachineOrderOptions {
  readonly db: Kysely<Database>;
  readonly providers: readonly MachineProvider[];
  readonly sealer: SecretSealer;
  readonly clock: Clock;
  readonly publicUrl: string;
  readonly options: ProvisioningOptions;
}

/** What nodes need before they are there themselves. */
export function createMachineOrders(deps: MachineOrderOptions) {
  const catalogues = [HETZNER_CATALOGUE].filter(({ provider }) => deps.providers.some(({ name }) => name === provider));
  const providers = byName(deps.providers);
  const plans = new PlanService({ providers, catalogues, clock: deps.clock });
  const machines = new MachineStore(deps.db);
  const secrets = new MachineSecrets(deps.sealer);
  return {
    ...deps,
    plans,
    machines,
    secrets,
    orders: new MachineOrderService({ ...deps, machines, machinesOn, plans, secrets }),
  };
}

export type MachineOrders = ReturnType<typeof createMachineOrders>;

interface MachineOptions {
  readonly nodes: NodeMachineService;
  readonly access: ProjectAccess;
  readonly audit: AuditService;
  readonly log: Logger;
}

export type MachineServices = ReturnType<typeof createMachineServices>;

export function createMachineServices(orders: MachineOrders, options: MachineOptions) {
  const deps = { ...orders, ...options, providers: byName(orders.providers) };
  return { provisioning: new ProvisioningService({ ...deps, machinesOn }), sweeps: new MachineSweepService(deps) };
}

function machinesOn(transaction: Kysely<Database>): MachineStore {
  return new MachineStore(transaction);
}

function byName(providers: readonly MachineProvider[]): ReadonlyMap<string, MachineProvider> {
  return new Map(providers.map((provider) => [provider.name, provider]));
}
