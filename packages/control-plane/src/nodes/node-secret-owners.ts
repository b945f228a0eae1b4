import type { Kysely } from "kysely";
import type { ProjectAccess } from "../auth/access.ts";
import type { UserPrincipal } from "../auth/principal.ts";
import type { Database } from "../db/schema.ts";
import type { FoundOwner, SecretOwners } from "../secrets/owned-secret-service.ts";
import type { SecretOwner } from "../secrets/secret-service.ts";
import { type NodeRecord, nodeResource } from "./node.ts";
import type { NodeChanges } from "./node-changes.ts";
import type { NodePlanner } from "./node-planner.ts";
import { type NodeService, nodeNotFound } from "./node-service.ts";
import type { NodeStores } from "./node-stores.ts";

export interface NodeSecretOwnersDeps {
  readonly stores: NodeStores;
  readonly nodes: NodeService;
  readonly changes: NodeChanges;
  readonly planner: NodePlanner;
  readonly access: ProjectAccess;
}

/** Nodes as what has secrets: those of its engine. */
export class NodeSecretOwners implements SecretOwners {
  readonly #deps: NodeSecretOwnersDeps;

  constructor(deps: NodeSecretOwnersDeps) {
    this.#deps = deps;
  }

  async find(caller: UserPrincipal, id: string): Promise<FoundOwner> {
    const node = await this.#deps.nodes.get(caller, id);
    await this.#deps.access.require(caller, node.projectId, "node.secrets");
    return found(node);
  }

  async change<T>(
    caller: UserPrincipal,
    id: string,
    work: (transaction: Kysely<Database>, found: FoundOwner) => Promise<T>,
  ): Promise<T> {
    const { planner, changes } = this.#deps;
    const { projectId } = await this.find(caller, id);
    const { result, desired } = await this.#deps.stores.transaction(async (stores, transaction) => {
      const node = await stores.nodes.findForUpdate(id);
      if (!node) throw nodeNotFound();
      const done = await work(transaction, found(node));
      return { result: done, desired: await planner.replan({ stores, transaction }, node) };
    });
    if (desired.changed) changes.emit({ nodeId: id, projectId, aspect: "desired" });
    return result;
  }

  async deliverable(nodeId: string, key: string): Promise<{ readonly owner: SecretOwner; readonly name: string }> {
    const node = await this.#deps.stores.nodes.find(nodeId);
    if (!node) throw nodeNotFound();
    return { owner: secretOwner(node), name: key };
  }
}

/** A node opens its own secrets. */
export function secretOwner(node: NodeRecord): SecretOwner {
  return { id: node.id, node };
}

function found(node: NodeRecord): FoundOwner {
  return { owner: secretOwner(node), projectId: node.projectId, resource: nodeResource(node) };
}
