import { isDeepStrictEqual } from "node:util";
import { DomainError } from "@fairlead/protocol/errors";
import { secretNameSchema } from "@fairlead/protocol/secrets";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { IdSource } from "@fairlead/protocol/values/ids";
import type { Kysely } from "kysely";
import type { AuditEntry } from "../../../access/audit/audit.ts";
import type { AuditService } from "../../../access/audit/audit-service.ts";
import type { ProjectAccess } from "../../../access/auth/access.ts";
import type { UserPrincipal } from "../../../access/auth/principal.ts";
import type { Database } from "../../../installation/db/tables/schema.ts";
import { providerKeyName, secretValueSchema } from "../../secrets/secret.ts";
import type { SecretService } from "../../secrets/secret-service.ts";
import type { NodePeople } from "../actions/node-actions-service.ts";
import type { NodeMachines } from "../actions/node-machines.ts";
import { type NodeRecord, nodeResource } from "../node.ts";
import type { NodeChangeFeed } from "../node-change-feed.ts";
import { type NodeService, nodeNotFound } from "../node-service.ts";
import { toNode } from "../node-view.ts";
import type { NodeStatusService } from "../observed/node-status-service.ts";
import type { NodeStores } from "../records/node-stores.ts";
import { nodeSecretOwner } from "../secrets/node-secret-owners.ts";
import { type NodePatch, patchNode, WRITABLE_FIELDS, type WritableNode } from "./node-patch.ts";
import type { NodePlanner } from "./node-planner.ts";

export interface UpdateNode extends NodePatch {
  /** Provider → its key, or null to remove it. Write-only: stored as secrets of the node. */
  readonly providerKeys: Readonly<Record<string, string | null>>;
  /** A new token of the machine's provider. Write-only. */
  readonly providerToken?: string | undefined;
}

export interface DeleteNode {
  /** Do not wait for or request the removal of its rented machine. */
  readonly abandonMachine?: boolean;
}

export interface NodeUpdateDeps {
  readonly stores: NodeStores;
  readonly nodes: NodeService;
  readonly changes: NodeChangeFeed;
  readonly status: NodeStatusService;
  readonly machines: Pick<NodeMachines, "checkToken" | "release">;
  readonly secrets: SecretService;
  readonly planner: NodePlanner;
  readonly access: ProjectAccess;
  readonly audit: AuditService;
  readonly people: NodePeople;
  readonly clock: Clock;
  readonly ids: IdSource;
}

/** Changes of existing nodes: fields, provider keys, deletion. */
export class NodeUpdateService {
  readonly #deps: NodeUpdateDeps;

  constructor(deps: NodeUpdateDeps) {
    this.#deps = deps;
  }

  /**
   * `PATCH /v1/nodes/{id}`. A change of workloads creates a new generation of the desired state. Everything is validated before writing, in one
   * transaction.
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
   * Revokes the node's identity and deletes the node. Its daemon removes the workloads. With a rented machine, it stays `deleting` until
   * the provider confirms that the machine is gone.
   */
  async delete(caller: UserPrincipal, id: string, { abandonMachine = false }: DeleteNode = {}): Promise<void> {
    const node = await this.#requireNode(caller, id, "node.delete");
    const entry = abandonMachine ? { actor: caller, detail: { machineAbandoned: true } } : { actor: caller };
    const removed = await this.remove(node, entry, { abandonMachine });
    if (!removed) throw nodeNotFound();
  }

  /** For callers that have checked the permission. Idempotent. @returns false if it was already deleted. */
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
        const reason = "Waiting for the provider to confirm that the machine is gone.";
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
    else await this.#deps.secrets.put(transaction, nodeSecretOwner(node), { name, value, providerKey: true });
  }

  async #tellUpdate(
    stores: NodeStores,
    { node, fields, generation }: Written & { readonly generation: number },
    who: string,
  ): Promise<void> {
    const { clock, ids } = this.#deps;
    const what = fields.includes("engineConfig") ? "the engine's config" : "the engine's provider keys";
    const message = `${who} changed ${what}: requested generation ${generation}.`;
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

/** Patches are validated without regard to running workloads. */
const UNOBSERVED = { desiredDaemonVersion: null, desired: null, report: null } as const;

interface Written {
  readonly node: NodeRecord;
  readonly fields: readonly (keyof WritableNode)[];
}

/** @returns the node and its changed fields. */
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
      throw new DomainError("invalid_request", "`providerKeys`: requires a provider's name and its key, or null.", {
        param: `providerKeys.${provider}`,
      });
    }
    checked.set(name.data, value);
  }
  return checked;
}
