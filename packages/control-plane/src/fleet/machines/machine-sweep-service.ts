import { createHash } from "node:crypto";
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import type { AuditActor } from "../../access/audit/audit.ts";
import type { AuditService } from "../../access/audit/audit-service.ts";
import type { ProjectAccess } from "../../access/auth/access.ts";
import type { UserPrincipal } from "../../access/auth/principal.ts";
import { UnsealError } from "../../access/auth/sealing/sealer.ts";
import type { Database } from "../../installation/db/tables/schema.ts";
import type { NodeMachineService } from "../nodes/actions/node-machine-service.ts";
import type { MachineRecord } from "./machine.ts";
import { type Machine, type MachineProvider, ProviderRefusal } from "./machine-provider.ts";
import type { MachineSecrets } from "./machine-secrets.ts";
import type { MachineStore } from "./machine-store.ts";
import { type PlanService, requireToken } from "./plans/plan-service.ts";
import { providerRefused } from "./provider-refused.ts";

export interface MachineSweepDeps {
  readonly db: Kysely<Database>;
  readonly machines: MachineStore;
  readonly nodes: NodeMachineService;
  readonly providers: ReadonlyMap<string, MachineProvider>;
  readonly plans: PlanService;
  readonly secrets: MachineSecrets;
  readonly access: ProjectAccess;
  readonly audit: AuditService;
  readonly log: Logger;
}

export interface SweepCall {
  readonly projectId: string;
  /** Whether to remove the orphans. */
  readonly delete: boolean;
  /** An additional provider, with the caller's token. */
  readonly provider?: string | undefined;
  readonly providerToken?: string | undefined;
}

/** A machine with our label that is not in the store: it costs money and serves no one. */
export interface Orphan {
  readonly provider: string;
  readonly machine: Machine;
  /** Removal was just requested. */
  readonly deleted: boolean;
  /** Why it could not be removed; null if it was or removal was not requested. */
  readonly refusal: string | null;
}

/** A node's machine that no longer exists at its provider. */
export interface MissingMachine {
  readonly provider: string;
  readonly nodeId: string;
  readonly machineId: string;
}

export interface MachineSweep {
  readonly orphans: readonly Orphan[];
  readonly missing: readonly MissingMachine[];
  /** Providers that could not be checked, and why. */
  readonly unseen: readonly { readonly provider: string; readonly message: string }[];
}

/** A provider and a token. */
interface Account {
  readonly provider: MachineProvider;
  readonly token: string;
  /** Null: not limited to one project. */
  readonly projectId: string | null;
}

type Found = Pick<MachineSweep, "orphans" | "missing">;

const SERVER = { kind: "system", name: "provisioning" } as const;

/** Compares the machines with our label at providers with the store. */
export class MachineSweepService {
  readonly #deps: MachineSweepDeps;

  constructor(deps: MachineSweepDeps) {
    this.#deps = deps;
  }

  /** With the tokens of the project's nodes and the caller's. @throws DomainError not_found, permission_denied, invalid_request */
  async sweep(caller: UserPrincipal, call: SweepCall): Promise<MachineSweep> {
    const { projectId, provider, providerToken } = call;
    await this.#deps.access.require(caller, projectId, "node.sweep");
    const { accounts, unseen } = await this.#accounts(projectId);
    if (provider !== undefined) {
      const named = this.#deps.plans.provider(provider, "provider");
      requireToken(named, providerToken);
      accounts.push({ provider: named, token: providerToken ?? "", projectId });
    }
    const swept = await this.#lookEverywhere(accounts, { delete: call.delete });
    const result = { ...swept, unseen: [...unseen, ...swept.unseen] };
    await this.#record(caller, projectId, result);
    return result;
  }

  /** For all projects. Results go to the log, the audit log and node events; nothing is removed. */
  async daily(): Promise<MachineSweep> {
    const { accounts, unseen } = await this.#accounts(null);
    const swept = await this.#lookEverywhere(accounts, { delete: false });
    for (const { provider, nodeId, machineId } of swept.missing) {
      const message = `${provider} no longer has machine ${machineId} of this node.`;
      await this.#deps.nodes.hold(nodeId, (_transaction, node) => node.tell("machine_missing", message));
    }
    return { ...swept, unseen: [...unseen, ...swept.unseen] };
  }

  async #lookEverywhere(accounts: readonly Account[], how: { readonly delete: boolean }): Promise<MachineSweep> {
    const orphans = new Map<string, Orphan>();
    const missing: MissingMachine[] = [];
    const unseen: { provider: string; message: string }[] = [];
    for (const account of distinct(accounts)) {
      const { name } = account.provider;
      try {
        const found = await this.#look(account, how);
        for (const orphan of found.orphans) orphans.set(`${name} ${orphan.machine.id}`, orphan);
        missing.push(...found.missing);
      } catch (error) {
        if (!(error instanceof ProviderRefusal)) throw error;
        unseen.push({ provider: name, message: providerRefused(name, error).message });
      }
    }
    return { orphans: [...orphans.values()], missing, unseen };
  }

  /** Asks the provider first, so that the store already knows machines ordered in between. */
  async #look(account: Account, how: { readonly delete: boolean }): Promise<Found> {
    const { provider, token, projectId } = account;
    const machines = await provider.findByLabel(token, null);
    const known = new Map((await this.#deps.machines.list(null)).map((record) => [record.nodeId, record]));
    const orphans: Orphan[] = [];
    for (const machine of machines.filter((each) => isOrphan(each, known.get(each.label)))) {
      const refusal = how.delete ? await this.#remove(account, machine) : null;
      const orphan = { provider: provider.name, machine, deleted: how.delete && refusal === null, refusal };
      await this.#tellOrphan(projectId, orphan);
      orphans.push(orphan);
    }
    return { orphans, missing: await this.#missing(account, { machines, known }) };
  }

  /** A failure must not block the others. @returns the reason */
  async #remove({ provider, token }: Account, { id }: Machine): Promise<string | null> {
    try {
      await provider.delete(token, id);
      return null;
    } catch (error) {
      if (!(error instanceof ProviderRefusal)) throw error;
      return error.providerWords;
    }
  }

  async #missing(
    { provider, token }: Account,
    { machines, known }: { readonly machines: readonly Machine[]; readonly known: ReadonlyMap<string, MachineRecord> },
  ): Promise<MissingMachine[]> {
    const seen = new Set(machines.map(({ id }) => id));
    const missing: MissingMachine[] = [];
    for (const record of known.values()) {
      const { nodeId, machineId, step } = record;
      if (record.provider !== provider.name || machineId === null || step !== "serving" || seen.has(machineId))
        continue;
      // A machine of another project is visible only to another token.
      if ((await this.#deps.secrets.openToken(record)) !== token) continue;
      const machine = await provider.get(token, machineId);
      if (machine === null || machine.state === "gone") missing.push({ provider: provider.name, nodeId, machineId });
    }
    return missing;
  }

  async #accounts(projectId: string | null): Promise<{ accounts: Account[]; unseen: MachineSweep["unseen"] }> {
    const { machines, providers, secrets } = this.#deps;
    const accounts: Account[] = [...providers.values()].flatMap((provider) =>
      provider.needsToken ? [] : [{ provider, token: "", projectId }],
    );
    const unseen: { provider: string; message: string }[] = [];
    for (const record of await machines.list(projectId)) {
      const provider = providers.get(record.provider);
      if (provider === undefined || record.sealedToken === null) continue;
      try {
        accounts.push({ provider, token: await secrets.openToken(record), projectId: record.projectId });
      } catch (error) {
        if (!(error instanceof UnsealError)) throw error;
        const message = `the token of node ${record.nodeId} was sealed with another master key; set it again`;
        unseen.push({ provider: record.provider, message });
      }
    }
    return { accounts, unseen };
  }

  async #tellOrphan(projectId: string | null, { provider, machine, deleted }: Orphan): Promise<void> {
    const { id, label, location } = machine;
    this.#deps.log.warn({ provider, machineId: id, label, location, deleted }, "found a machine without a node");
    await this.#deps.audit.record(this.#deps.db, {
      actor: SERVER,
      action: "machine.orphan",
      projectId,
      resource: { type: "machine", id },
      detail: { provider, label, location, deleted },
    });
  }

  async #record(actor: AuditActor, projectId: string, { orphans, missing }: MachineSweep): Promise<void> {
    await this.#deps.audit.record(this.#deps.db, {
      actor,
      action: "machine.sweep",
      projectId,
      resource: { type: "project", id: projectId },
      detail: {
        orphans: orphans.length,
        deleted: orphans.filter(({ deleted }) => deleted).length,
        missing: missing.length,
      },
    });
  }
}

function isOrphan({ id, state }: Machine, record: MachineRecord | undefined): boolean {
  if (state === "gone" || state === "stopping") return false;
  if (record === undefined || record.step === "failed") return true;
  return record.machineId !== null && record.machineId !== id;
}

function distinct(accounts: readonly Account[]): readonly Account[] {
  const keyOf = ({ provider, token }: Account): string =>
    `${provider.name} ${createHash("sha256").update(token).digest("hex")}`;
  return [...new Map(accounts.map((account) => [keyOf(account), account])).values()];
}
