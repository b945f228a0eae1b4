import { isDeepStrictEqual } from "node:util";
import { DomainError } from "@fairlead/protocol/errors";
import type { ProjectAccess } from "../auth/access.ts";
import type { UserPrincipal } from "../auth/principal.ts";
import { providerKeyName, secretNameSchema, secretValueSchema } from "../secrets/secret.ts";
import type { SecretService } from "../secrets/secret-service.ts";
import { type NodeRecord, toNode } from "./node.ts";
import type { NodeChanges } from "./node-changes.ts";
import { type NodePatch, patchNode } from "./node-patch.ts";
import { type NodeService, nodeNotFound } from "./node-service.ts";
import type { NodeStores } from "./node-stores.ts";
import { planWorkloads } from "./plan-desired.ts";

export interface UpdateNode extends NodePatch {
  /** Provider → its key, or null to forget it. Write-only: kept as secrets of the node. */
  readonly providerKeys: Readonly<Record<string, string | null>>;
}

export interface NodeChangeDeps {
  readonly stores: NodeStores;
  readonly nodes: NodeService;
  readonly changes: NodeChanges;
  readonly secrets: SecretService;
  readonly access: ProjectAccess;
}

/** What people change about a node that is there: its fields, its secrets, its end. */
export class NodeChangeService {
  readonly #deps: NodeChangeDeps;

  constructor(deps: NodeChangeDeps) {
    this.#deps = deps;
  }

  /**
   * `PATCH /v1/nodes/{id}`. A changed engine config is a new generation of the node's desired state.
   * All is judged before anything is written; secrets go first, and a repeat of the call is harmless.
   */
  async update(caller: UserPrincipal, id: string, update: UpdateNode): Promise<NodeRecord> {
    const node = await this.#requireNode(caller, id, "node.update");
    const providerKeys = checkedProviderKeys(update.providerKeys);
    patchNode(toNode(node), update);
    for (const [name, value] of providerKeys) {
      if (value === null) await this.#deps.secrets.delete(node.id, name);
      else await this.#deps.secrets.put(node, name, value);
    }
    const updated = await this.#deps.stores.transaction((stores) => write(stores, node, update));
    this.#announce(node, updated.replanned ? "desired" : "status");
    return updated.node;
  }

  /** Revokes the node's identity at once and forgets the node. Its machine is the owner's: nothing on it is touched from here. */
  async delete(caller: UserPrincipal, id: string): Promise<void> {
    const node = await this.#requireNode(caller, id, "node.delete");
    await this.#deps.stores.nodes.delete(node.projectId, node.id);
    this.#announce(node, "removed");
  }

  async putSecret(
    caller: UserPrincipal,
    id: string,
    secret: { readonly name: string; readonly value: string },
  ): Promise<void> {
    const node = await this.#requireNode(caller, id, "node.secrets");
    await this.#deps.secrets.put(node, secret.name, secret.value);
  }

  /** @throws DomainError not_found */
  async deleteSecret(caller: UserPrincipal, id: string, name: string): Promise<void> {
    const node = await this.#requireNode(caller, id, "node.secrets");
    if (await this.#deps.secrets.delete(node.id, name)) return;
    throw new DomainError("not_found", "This node has no secret of that name.");
  }

  async secretNames(
    caller: UserPrincipal,
    id: string,
  ): Promise<{ readonly name: string; readonly updatedAt: number }[]> {
    const node = await this.#requireNode(caller, id, "node.secrets");
    return this.#deps.secrets.names(node.id);
  }

  async #requireNode(
    caller: UserPrincipal,
    id: string,
    operation: "node.update" | "node.delete" | "node.secrets",
  ): Promise<NodeRecord> {
    const node = await this.#deps.nodes.get(caller, id);
    await this.#deps.access.require(caller, node.projectId, operation);
    return node;
  }

  #announce(node: NodeRecord, aspect: "desired" | "status" | "removed"): void {
    this.#deps.changes.emit({ nodeId: node.id, projectId: node.projectId, aspect });
  }
}

async function write(
  stores: NodeStores,
  { id, projectId }: NodeRecord,
  update: NodePatch,
): Promise<{ node: NodeRecord; replanned: boolean }> {
  const current = await stores.nodes.findForUpdate(id);
  if (!current) throw nodeNotFound();
  const node = { ...current, ...patchNode(toNode(current), update) };
  await stores.nodes.setConfig(projectId, id, node);
  const replanned = !isDeepStrictEqual(node.engineConfig, current.engineConfig);
  if (replanned) await stores.reports.setDesired(id, planWorkloads(id, node.engineConfig));
  return { node, replanned };
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
