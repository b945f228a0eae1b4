import type { SecretAnswer } from "@fairlead/protocol/secrets";
import type { Kysely } from "kysely";
import type { AuditResource } from "../../access/audit/audit.ts";
import type { AuditService } from "../../access/audit/audit-service.ts";
import type { UserPrincipal } from "../../access/auth/principal.ts";
import type { Database } from "../../installation/db/tables/schema.ts";
import type { SecretFacts } from "./secret.ts";
import type { SecretOwner, SecretService } from "./secret-service.ts";

/** A node or agent whose secrets the caller may see and change. */
export interface FoundOwner {
  readonly owner: SecretOwner;
  readonly projectId: string;
  readonly resource: AuditResource;
}

/** Lookup, locking and the effects of changes for one kind of owner. */
export interface SecretOwners {
  /** @throws DomainError not_found, permission_denied */
  find(caller: UserPrincipal, id: string): Promise<FoundOwner>;
  /**
   * Runs the work in a transaction that locks the owner's row, and updates desired states in it.
   * @throws DomainError not_found, permission_denied, and the reason why nothing can be changed now
   */
  change<T>(
    caller: UserPrincipal,
    id: string,
    work: (transaction: Kysely<Database>, found: FoundOwner) => Promise<T>,
  ): Promise<T>;
  /**
   * The secret that a node's daemon requests by key. Null if it is not for that node.
   * @throws DomainError not_found if the node does not exist
   */
  deliverable(nodeId: string, key: string): Promise<{ readonly owner: SecretOwner; readonly name: string } | null>;
}

export interface OwnedSecretDeps {
  readonly owners: SecretOwners;
  readonly secrets: SecretService;
  readonly audit: AuditService;
}

/** Secrets of one kind of owner: users set and delete them, daemons fetch them. The desired state decides which ones a workload gets. */
export class OwnedSecretService {
  readonly #deps: OwnedSecretDeps;

  constructor(deps: OwnedSecretDeps) {
    this.#deps = deps;
  }

  /** Creates or replaces a secret as the next version. @throws DomainError not_found, permission_denied, node_not_enrolled */
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

  /** Idempotent. @throws DomainError not_found, also if the secret never existed; permission_denied */
  async delete(caller: UserPrincipal, id: string, name: string): Promise<void> {
    const { owners, secrets } = this.#deps;
    await owners.change(caller, id, async (transaction, found) => {
      const version = await secrets.delete(transaction, found.owner.id, name);
      if (version === null) return;
      await this.#record(transaction, { caller, verb: "delete", detail: { secret: name, version } }, found);
    });
  }

  /** Never returns values. @throws DomainError not_found, permission_denied */
  async list(caller: UserPrincipal, id: string): Promise<SecretFacts[]> {
    const { owner } = await this.#deps.owners.find(caller, id);
    return this.#deps.secrets.list(owner);
  }

  /** For the node's daemon, sealed to its current key. @throws DomainError not_found if the node does not exist */
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
