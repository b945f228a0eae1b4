import type { Clock } from "@fairlead/protocol/clock";
import { DomainError } from "@fairlead/protocol/errors";
import type { Kysely } from "kysely";
import type { Database } from "../db/schema.ts";
import type { CheckedToken, MachineOrder, NodeMachines } from "../nodes/node-machines.ts";
import type { PlanService } from "../plans/plan-service.ts";
import { type MachineRecord, machineName, parsePlanId, wantedLocations } from "./machine.ts";
import { type MachineProvider, ProviderRefusal } from "./machine-provider.ts";
import type { MachineSecrets } from "./machine-secrets.ts";
import type { MachineStore } from "./machine-store.ts";
import { providerRefused } from "./provider-refused.ts";
import type { ProvisioningOptions } from "./provisioning-settings.ts";

export interface MachineOrderDeps {
  readonly machines: MachineStore;
  readonly machinesOn: (transaction: Kysely<Database>) => MachineStore;
  readonly plans: PlanService;
  readonly secrets: MachineSecrets;
  readonly clock: Clock;
  readonly publicUrl: string;
  readonly options: ProvisioningOptions;
}

/** What nodes ask for: a machine, another token for it, its end. What then happens is the provisioning's (design §6). */
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
      message: `A ${name.type} is being asked for at ${provider.name}.`,
      place: (transaction, node) => this.#place(transaction, { ...node, ...name, locations, providerToken }),
    };
  }

  async checkToken(nodeId: string, providerToken: string): Promise<CheckedToken> {
    const { machines, machinesOn, secrets, plans } = this.#deps;
    const machine = await machines.find(nodeId);
    const provider = machine && plans.provider(machine.provider, "providerToken");
    if (machine === null || !provider?.needsToken) {
      throw new DomainError("invalid_request", "`providerToken`: this node has no machine that takes one.", {
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

  /** A machine elsewhere enrols by the platform's public address, over a transport that nobody else changes. */
  #requireReachable({ needsToken }: MachineProvider): void {
    const { publicUrl, options } = this.#deps;
    // Those without a token are on this machine.
    if (!needsToken || options.insecure || publicUrl.startsWith("https:")) return;
    throw new DomainError(
      "not_configured",
      `Rented machines reach this platform by its \`server.publicUrl\`, which is ${publicUrl}: it must be an https address that ` +
        "they can reach (or, for a trial, `provisioning.insecure` be on).",
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

/** A token of another of the provider's projects is good, and of no use here. */
async function requireSight(provider: MachineProvider, { machineId }: MachineRecord, token: string): Promise<void> {
  if (machineId === null || (await provider.get(token, machineId)) !== null) return;
  const providerWords = `there is no machine ${machineId} in the project of this token`;
  throw new ProviderRefusal({ kind: "wrong_project", providerWords });
}

function unknownPlan(planId: string): DomainError {
  const message = `\`planId\`: "${planId}" is no plan; \`byo\` for a machine that you have, or one of \`GET /v1/plans\`.`;
  return new DomainError("invalid_request", message, { param: "planId" });
}
