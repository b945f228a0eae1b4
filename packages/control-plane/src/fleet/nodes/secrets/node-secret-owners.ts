import type { Kysely } from "kysely";
import type { ProjectAccess } from "../../../access/auth/access.ts";
import type { UserPrincipal } from "../../../access/auth/principal.ts";
import type { Database } from "../../../installation/db/tables/schema.ts";
import type { FoundOwner, SecretOwners } from "../../secrets/owned-secret-service.ts";
import type { SecretOwner } from "../../secrets/secret-service.ts";
import type { NodePlanner } from "../desired/node-planner.ts";
import { type NodeRecord, nodeResource } from "../node.ts";
import type { NodeChangeFeed } from "../node-change-feed.ts";
import { type NodeService, nodeNotFound } from "../node-service.ts";
import type { NodeStores } from "../records/node-stores.ts";

export interface NodeSecretOwnersDeps {
  readonly stores: NodeStores;
  readonly nodes: NodeService;
  readonly changes: NodeChangeFeed;
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
    return { owner: nodeSecretOwner(node), name: key };
  }
}

/** A node opens its own secrets. */
export function nodeSecretOwner(node: NodeRecord): SecretOwner {
  return { id: node.id, node };
}

function found(node: NodeRecord): FoundOwner {
  return { owner: nodeSecretOwner(node), projectId: node.projectId, resource: nodeResource(node) };
}
