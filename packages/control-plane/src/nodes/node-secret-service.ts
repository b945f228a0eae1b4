import type { SecretAnswer } from "@fairlead/protocol/secrets";
import type { Kysely } from "kysely";
import type { AuditEntry } from "../audit/audit.ts";
import type { AuditService } from "../audit/audit-service.ts";
import type { ProjectAccess } from "../auth/access.ts";
import type { UserPrincipal } from "../auth/principal.ts";
import type { Database } from "../db/schema.ts";
import type { SecretFacts, SecretService } from "../secrets/secret-service.ts";
import { type NodeRecord, nodeResource } from "./node.ts";
import type { NodeChanges } from "./node-changes.ts";
import type { NodePlanner } from "./node-planner.ts";
import { type NodeService, nodeNotFound } from "./node-service.ts";
import type { NodeStores } from "./node-stores.ts";

export interface NodeSecretDeps {
  readonly stores: NodeStores;
  readonly nodes: NodeService;
  readonly changes: NodeChanges;
  readonly secrets: SecretService;
  readonly planner: NodePlanner;
  readonly access: ProjectAccess;
  readonly audit: AuditService;
}

/** A node's secrets: people set and delete them, its daemon fetches them. What a workload needs and gets is its desired state's. */
export class NodeSecretService {
  readonly #deps: NodeSecretDeps;

  constructor(deps: NodeSecretDeps) {
    this.#deps = deps;
  }

  /** Creates or replaces, as the next version. @throws DomainError not_found, permission_denied, node_not_enrolled */
  async put(
    caller: UserPrincipal,
    id: string,
    secret: { readonly name: string; readonly value: string },
  ): Promise<SecretFacts> {
    return this.#change(await this.#requireNode(caller, id), async (transaction, node) => {
      const facts = await this.#deps.secrets.put(transaction, node, secret);
      const detail = { secret: secret.name, version: facts.version };
      await this.#record(transaction, { actor: caller, action: "node.secret.put", detail }, node);
      return facts;
    });
  }

  /** Harmless where it is done already. @throws DomainError not_found also where the node never had such a secret */
  async delete(caller: UserPrincipal, id: string, name: string): Promise<void> {
    await this.#change(await this.#requireNode(caller, id), async (transaction, node) => {
      const version = await this.#deps.secrets.delete(transaction, node.id, name);
      if (version === null) return;
      const detail = { secret: name, version };
      await this.#record(transaction, { actor: caller, action: "node.secret.delete", detail }, node);
    });
  }

  /** Never a value. @throws DomainError not_found, permission_denied */
  async list(caller: UserPrincipal, id: string): Promise<SecretFacts[]> {
    return this.#deps.secrets.list(await this.#requireNode(caller, id));
  }

  /** For the node's own daemon, sealed to the key that it has now. @throws DomainError not_found where the node is gone */
  async deliver(nodeId: string, name: string): Promise<SecretAnswer> {
    const node = await this.#deps.stores.nodes.find(nodeId);
    if (!node) throw nodeNotFound();
    return this.#deps.secrets.deliver(node, name);
  }

  async #requireNode(caller: UserPrincipal, id: string): Promise<NodeRecord> {
    const node = await this.#deps.nodes.get(caller, id);
    await this.#deps.access.require(caller, node.projectId, "node.secrets");
    return node;
  }

  /** The change and what it makes of the desired state, at once. */
  async #change<T>(
    { id: nodeId, projectId }: NodeRecord,
    work: (transaction: Kysely<Database>, node: NodeRecord) => Promise<T>,
  ): Promise<T> {
    const { planner, changes } = this.#deps;
    const { result, desired } = await this.#deps.stores.transaction(async (stores, transaction) => {
      const node = await stores.nodes.findForUpdate(nodeId);
      if (!node) throw nodeNotFound();
      const done = await work(transaction, node);
      return { result: done, desired: await planner.replan({ stores, transaction }, node) };
    });
    if (desired.changed) changes.emit({ nodeId, projectId, aspect: "desired" });
    return result;
  }

  async #record(
    transaction: Kysely<Database>,
    entry: Pick<AuditEntry, "actor" | "action" | "detail">,
    node: NodeRecord,
  ): Promise<void> {
    await this.#deps.audit.record(transaction, { ...entry, projectId: node.projectId, resource: nodeResource(node) });
  }
}
