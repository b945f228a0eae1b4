import { DomainError } from "@fairlead/protocol/errors";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { Kysely } from "kysely";
import type { Database } from "../../installation/db/tables/schema.ts";
import type { CheckedToken, MachineOrder, NodeMachines } from "../nodes/actions/node-machines.ts";
import { type MachineRecord, machineName, parsePlanId, wantedLocations } from "./machine.ts";
import { type MachineProvider, ProviderRefusal } from "./machine-provider.ts";
import type { MachineSecrets } from "./machine-secrets.ts";
import type { MachineStore } from "./machine-store.ts";
import type { PlanService } from "./plans/plan-service.ts";
import { providerRefused } from "./provider-refused.ts";
import type { ProvisioningOptions } from "./provisioning/provisioning-settings.ts";

export interface MachineOrderDeps {
  readonly machines: MachineStore;
  readonly machinesOn: (transaction: Kysely<Database>) => MachineStore;
  readonly plans: PlanService;
  readonly secrets: MachineSecrets;
  readonly clock: Clock;
  readonly publicUrl: string;
  readonly options: ProvisioningOptions;
}

/** Records orders: a machine, a new token, or the end of a machine. The provisioning service executes them. */
export class MachineOrderService implements NodeMachines {
  readonly #deps: MachineOrderDeps;

  constructor(deps: MachineOrderDeps) {
    this.#deps = deps;
  }

  async prepare(input: Parameters<NodeMachines["prepare"]>[0]): Promise<MachineOrder> {
    const { planId, location, providerToken } = input;
    const name = parsePlanId(planId);
    if (name === null) throw unknownPlan(planId);
    const provider = this.#deps.plans.provider(name.provider, "planId");
    this.#requireReachable(provider);
    const plan = await this.#asked(provider.name, async () => {
      const found = await this.#deps.plans.find(name, providerToken);
      await provider.checkToken(providerToken ?? "");
      return found;
    });
    const locations = wantedLocations(plan, location);
    return {
      message: `Requesting a ${name.type} from ${provider.name}.`,
      place: (transaction, node) => this.#place(transaction, { ...node, ...name, locations, providerToken }),
    };
  }

  async checkToken(nodeId: string, providerToken: string): Promise<CheckedToken> {
    const { machines, machinesOn, secrets, plans } = this.#deps;
    const machine = await machines.find(nodeId);
    const provider = machine && plans.provider(machine.provider, "providerToken");
    if (machine === null || !provider?.needsToken) {
      throw new DomainError("invalid_request", "`providerToken`: the machine of this node does not use a token.", {
        param: "providerToken",
      });
    }
    await this.#asked(provider.name, async () => {
      await provider.checkToken(providerToken);
      await requireSight(provider, machine, providerToken);
    });
    const sealedToken = await secrets.sealToken(nodeId, providerToken);
    return { store: (transaction) => machinesOn(transaction).update(nodeId, { sealedToken }) };
  }

  async release(transaction: Kysely<Database>, nodeId: string): Promise<boolean> {
    const machines = this.#deps.machinesOn(transaction);
    if ((await machines.find(nodeId)) === null) return false;
    await machines.update(nodeId, { step: "removing" });
    return true;
  }

  async #place(transaction: Kysely<Database>, order: Order): Promise<void> {
    const { secrets, clock, options, machinesOn } = this.#deps;
    const { id: nodeId, projectId, provider, type, locations, providerToken } = order;
    await machinesOn(transaction).insert({
      nodeId,
      projectId,
      provider,
      type,
      name: machineName(order),
      step: "ordering",
      locations,
      machineId: null,
      sealedToken: providerToken === undefined ? null : await secrets.sealToken(nodeId, providerToken),
      sealedBootstrap: null,
      bootstrapExpiresAt: null,
      attemptedAt: null,
      deadlineAt: clock.now() + options.deadlineMs,
    });
  }

  /** Remote machines enroll at the public URL, over a transport that must be tamper-proof. */
  #requireReachable({ needsToken }: MachineProvider): void {
    const { publicUrl, options } = this.#deps;
    // Providers without a token use this machine.
    if (!needsToken || options.insecure || publicUrl.startsWith("https:")) return;
    throw new DomainError(
      "not_configured",
      `Rented machines reach this platform at its \`server.publicUrl\`, which is ${publicUrl}. It must be an https URL that ` +
        "they can reach. For a trial, set `provisioning.insecure`.",
    );
  }

  async #asked<T>(provider: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw error instanceof ProviderRefusal ? providerRefused(provider, error) : error;
    }
  }
}

interface Order {
  readonly id: string;
  readonly projectId: string;
  readonly identifier: string;
  readonly provider: string;
  readonly type: string;
  readonly locations: readonly string[];
  readonly providerToken: string | undefined;
}

/** A token of another project at the provider is valid, but useless. */
async function requireSight(provider: MachineProvider, { machineId }: MachineRecord, token: string): Promise<void> {
  if (machineId === null || (await provider.get(token, machineId)) !== null) return;
  const providerWords = `there is no machine ${machineId} in the project of this token`;
  throw new ProviderRefusal({ kind: "wrong_project", providerWords });
}

function unknownPlan(planId: string): DomainError {
  const message = `\`planId\`: there is no plan "${planId}". Use \`byo\` for your own machine, or a plan from \`GET /v1/plans\`.`;
  return new DomainError("invalid_request", message, { param: "planId" });
}
