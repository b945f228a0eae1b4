import type { SecretAnswer } from "@fairlead/protocol/secrets";
import type { Kysely } from "kysely";
import type { AuditResource } from "../audit/audit.ts";
import type { AuditService } from "../audit/audit-service.ts";
import type { UserPrincipal } from "../auth/principal.ts";
import type { Database } from "../db/schema.ts";
import type { SecretFacts } from "./secret.ts";
import type { SecretOwner, SecretService } from "./secret-service.ts";

/** A node or an agent whose secrets somebody may see and change. */
export interface FoundOwner {
  readonly owner: SecretOwner;
  readonly projectId: string;
  readonly resource: AuditResource;
}

/** What has secrets, of one kind: how it is found and held, and what follows from a change. */
export interface SecretOwners {
  /** @throws DomainError not_found, permission_denied */
  find(caller: UserPrincipal, id: string): Promise<FoundOwner>;
  /**
   * Does the work in one transaction that holds the owner's row, and with it what the work makes of desired states.
   * @throws DomainError not_found, permission_denied, and what tells why nothing can be changed now
   */
  change<T>(
    caller: UserPrincipal,
    id: string,
    work: (transaction: Kysely<Database>, found: FoundOwner) => Promise<T>,
  ): Promise<T>;
  /** The secret that a node's daemon asks for by its key. Null: nothing that is to be on that node. @throws DomainError not_found without such a node */
  deliverable(nodeId: string, key: string): Promise<{ readonly owner: SecretOwner; readonly name: string } | null>;
}

export interface OwnedSecretDeps {
  readonly owners: SecretOwners;
  readonly secrets: SecretService;
  readonly audit: AuditService;
}

/** The secrets of one kind of owner: people set and delete them, daemons fetch them. What a workload needs and gets is the desired state's. */
export class OwnedSecretService {
  readonly #deps: OwnedSecretDeps;

  constructor(deps: OwnedSecretDeps) {
    this.#deps = deps;
  }

  /** Creates or replaces, as the next version. @throws DomainError not_found, permission_denied, node_not_enrolled */
  async put(
    caller: UserPrincipal,
    id: string,
    secret: { readonly name: string; readonly value: string },
  ): Promise<SecretFacts> {
    const { owners, secrets } = this.#deps;
    return owners.change(caller, id, async (transaction, found) => {
      const facts = await secrets.put(transaction, found.owner, secret);
      const detail = { secret: secret.name, version: facts.version };
      await this.#record(transaction, { caller, verb: "put", detail }, found);
      return facts;
    });
  }

  /** Harmless where it is done already. @throws DomainError not_found also where there never was such a secret; permission_denied */
  async delete(caller: UserPrincipal, id: string, name: string): Promise<void> {
    const { owners, secrets } = this.#deps;
    await owners.change(caller, id, async (transaction, found) => {
      const version = await secrets.delete(transaction, found.owner.id, name);
      if (version === null) return;
      await this.#record(transaction, { caller, verb: "delete", detail: { secret: name, version } }, found);
    });
  }

  /** Never a value. @throws DomainError not_found, permission_denied */
  async list(caller: UserPrincipal, id: string): Promise<SecretFacts[]> {
    const { owner } = await this.#deps.owners.find(caller, id);
    return this.#deps.secrets.list(owner);
  }

  /** For the node's own daemon, sealed to the key that it has now. @throws DomainError not_found where the node is gone */
  async deliver(nodeId: string, key: string): Promise<SecretAnswer> {
    const found = await this.#deps.owners.deliverable(nodeId, key);
    return found === null ? { state: "missing" } : this.#deps.secrets.deliver(found.owner, found.name);
  }

  async #record(
    transaction: Kysely<Database>,
    { caller, verb, detail }: Change,
    { projectId, resource }: FoundOwner,
  ): Promise<void> {
    const action = `${this.#deps.secrets.kind}.secret.${verb}` as const;
    await this.#deps.audit.record(transaction, { actor: caller, action, projectId, resource, detail });
  }
}

interface Change {
  readonly caller: UserPrincipal;
  readonly verb: "put" | "delete";
  readonly detail: Readonly<Record<string, string | number>>;
}
