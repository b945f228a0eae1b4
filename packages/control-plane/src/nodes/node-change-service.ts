import { isDeepStrictEqual } from "node:util";
import type { Clock } from "@fairlead/protocol/clock";
import { DomainError } from "@fairlead/protocol/errors";
import type { IdSource } from "@fairlead/protocol/ids";
import { secretNameSchema } from "@fairlead/protocol/secrets";
import type { Kysely } from "kysely";
import type { AuditEntry } from "../audit/audit.ts";
import type { AuditService } from "../audit/audit-service.ts";
import type { ProjectAccess } from "../auth/access.ts";
import type { UserPrincipal } from "../auth/principal.ts";
import type { Database } from "../db/schema.ts";
import { providerKeyName, secretValueSchema } from "../secrets/secret.ts";
import type { SecretService } from "../secrets/secret-service.ts";
import { type NodeRecord, nodeResource } from "./node.ts";
import type { NodeChanges } from "./node-changes.ts";
import type { People } from "./node-life-service.ts";
import type { NodeMachines } from "./node-machines.ts";
import { type NodePatch, patchNode, WRITABLE_FIELDS, type WritableNode } from "./node-patch.ts";
import type { NodePlanner } from "./node-planner.ts";
import { secretOwner } from "./node-secret-owners.ts";
import { type NodeService, nodeNotFound } from "./node-service.ts";
import type { NodeStatusService } from "./node-status-service.ts";
import type { NodeStores } from "./node-stores.ts";
import { toNode } from "./node-view.ts";

export interface UpdateNode extends NodePatch {
  /** Provider → its key, or null to forget it. Write-only: kept as secrets of the node. */
  readonly providerKeys: Readonly<Record<string, string | null>>;
  /** Another token at the provider of its machine. Write-only. */
  readonly providerToken?: string | undefined;
}

export interface DeleteNode {
  /** Do not wait for the end of its rented machine, nor ask for it. */
  readonly abandonMachine?: boolean;
}

export interface NodeChangeDeps {
  readonly stores: NodeStores;
  readonly nodes: NodeService;
  readonly changes: NodeChanges;
  readonly status: NodeStatusService;
  readonly machines: Pick<NodeMachines, "checkToken" | "release">;
  readonly secrets: SecretService;
  readonly planner: NodePlanner;
  readonly access: ProjectAccess;
  readonly audit: AuditService;
  readonly people: People;
  readonly clock: Clock;
  readonly ids: IdSource;
}

/** What people change about a node that is there: its fields, its provider keys, its end. */
export class NodeChangeService {
  readonly #deps: NodeChangeDeps;

  constructor(deps: NodeChangeDeps) {
    this.#deps = deps;
  }

  /**
   * `PATCH /v1/nodes/{id}`. What it changes about the node's workloads is a new generation of its desired state.
   * All is judged before anything is written, in one transaction.
   */
  async update(caller: UserPrincipal, id: string, update: UpdateNode): Promise<NodeRecord> {
    const node = await this.#requireNode(caller, id, "node.update");
    const providerKeys = checkedProviderKeys(update.providerKeys);
    patchNode(toNode(node, UNOBSERVED), update);
    const { providerToken } = update;
    const token = providerToken === undefined ? null : await this.#deps.machines.checkToken(node.id, providerToken);
    const who = (await this.#deps.people.get(caller.userId)).email;
    const updated = await this.#deps.stores.transaction(async (stores, transaction) => {
      const current = await stores.nodes.findForUpdate(node.id);
      if (!current) throw nodeNotFound();
      for (const [name, value] of providerKeys) await this.#setSecret(transaction, current, { name, value });
      await token?.store(transaction);
      const written = await write(stores, current, update);
      const desired = await this.#deps.planner.replan({ stores, transaction }, written.node);
      if (desired.changed) await this.#tellUpdate(stores, { ...written, generation: desired.generation }, who);
      const fields = [...written.fields, ...(token === null ? [] : ["providerToken"])].join(",");
      const detail = { fields, providerKeys: [...providerKeys.keys()].join(",") };
      await this.#record(transaction, { actor: caller, action: "node.update", detail }, written.node);
      return { node: written.node, desired };
    });
    this.#announce(node, updated.desired.changed ? "desired" : "status");
    return updated.node;
  }

  /**
   * Revokes the node's identity at once and forgets the node. Its daemon hears of it by its key, and takes down what it ran. One with
   * a rented machine stays `deleting` until its provider says that the machine is gone.
   */
  async delete(caller: UserPrincipal, id: string, { abandonMachine = false }: DeleteNode = {}): Promise<void> {
    const node = await this.#requireNode(caller, id, "node.delete");
    const entry = abandonMachine ? { actor: caller, detail: { machineAbandoned: true } } : { actor: caller };
    const removed = await this.remove(node, entry, { abandonMachine });
    if (!removed) throw nodeNotFound();
  }

  /** The same for whoever has judged that the node goes. Asking again changes nothing. @returns false where it was gone already. */
  async remove(
    node: NodeRecord,
    entry: Pick<AuditEntry, "actor" | "detail">,
    { abandonMachine = false }: DeleteNode = {},
  ): Promise<boolean> {
    const removed = await this.#deps.stores.transaction(async (stores, transaction) => {
      const current = await stores.nodes.findForUpdate(node.id);
      if (current === null) return false;
      if (current.status === "deleting" && !abandonMachine) return true;
      const { id, signingKey } = current;
      await this.#record(transaction, { ...entry, action: "node.delete" }, node);
      if (!abandonMachine && (await this.#deps.machines.release(transaction, id))) {
        const reason = "Waiting for the provider to say that its machine is gone.";
        await this.#deps.status.applyWithin(stores, id, { event: "delete_requested", reason });
        return true;
      }
      if (signingKey !== null) await stores.deleted.insert({ id, signingKey }, this.#deps.clock.now());
      await stores.nodes.delete(node.projectId, id);
      return true;
    });
    if (removed) this.#announce(node, "removed");
    return removed;
  }

  async #requireNode(caller: UserPrincipal, id: string, operation: "node.update" | "node.delete"): Promise<NodeRecord> {
    const node = await this.#deps.nodes.get(caller, id);
    await this.#deps.access.require(caller, node.projectId, operation);
    return node;
  }

  async #setSecret(
    transaction: Kysely<Database>,
    node: NodeRecord,
    { name, value }: { readonly name: string; readonly value: string | null },
  ): Promise<void> {
    if (value === null) await this.#deps.secrets.forget(transaction, node.id, name);
    else await this.#deps.secrets.put(transaction, secretOwner(node), { name, value, providerKey: true });
  }

  async #tellUpdate(
    stores: NodeStores,
    { node, fields, generation }: Written & { readonly generation: number },
    who: string,
  ): Promise<void> {
    const { clock, ids } = this.#deps;
    const what = fields.includes("engineConfig") ? "the engine's config" : "the engine's provider keys";
    const message = `${who} changed ${what}: generation ${generation} is to run.`;
    const id = ids.next("event");
    await stores.events.append([
      { id, nodeId: node.id, at: clock.now(), kind: "update_requested", status: null, message },
    ]);
  }

  async #record(
    transaction: Kysely<Database>,
    entry: Pick<AuditEntry, "actor" | "action" | "detail">,
    node: NodeRecord,
  ): Promise<void> {
    await this.#deps.audit.record(transaction, { ...entry, projectId: node.projectId, resource: nodeResource(node) });
  }

  #announce(node: NodeRecord, aspect: "desired" | "status" | "removed"): void {
    this.#deps.changes.emit({ nodeId: node.id, projectId: node.projectId, aspect });
  }
}

/** What a node runs is nothing that a patch is judged by. */
const UNOBSERVED = { desiredDaemonVersion: null, desired: null, report: null } as const;

interface Written {
  readonly node: NodeRecord;
  readonly fields: readonly (keyof WritableNode)[];
}

/** @returns the node and which of its fields changed. */
async function write(stores: NodeStores, current: NodeRecord, update: NodePatch): Promise<Written> {
  const { id, projectId } = current;
  const node = { ...current, ...patchNode(toNode(current, UNOBSERVED), update) };
  await stores.nodes.setConfig(projectId, id, node);
  const fields = WRITABLE_FIELDS.filter((field) => !isDeepStrictEqual(node[field], current[field]));
  return { node, fields };
}

function checkedProviderKeys(keys: UpdateNode["providerKeys"]): Map<string, string | null> {
  const checked = new Map<string, string | null>();
  for (const [provider, value] of Object.entries(keys)) {
    const name = secretNameSchema.safeParse(providerKeyName(provider));
    const good = name.success && (value === null || secretValueSchema.safeParse(value).success);
    if (!good || provider === "") {
      throw new DomainError("invalid_request", "`providerKeys`: takes a provider's name and its key, or null.", {
        param: `providerKeys.${provider}`,
      });
    }
    checked.set(name.data, value);
  }
  return checked;
}
