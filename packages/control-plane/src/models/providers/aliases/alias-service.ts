import { DomainError } from "@fairlead/protocol/errors";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { Kysely } from "kysely";
import type { AuditService } from "../../../access/audit/audit-service.ts";
import type { ProjectAccess } from "../../../access/auth/access.ts";
import type { UserPrincipal } from "../../../access/auth/principal.ts";
import type { Database } from "../../../installation/db/tables/schema.ts";
import type { ModelChanges } from "../../names/model-changes.ts";
import { splitModelName } from "../../names/model-name.ts";
import type { ProjectNames } from "../../names/project-names.ts";
import type { ProviderStores } from "../provider-stores.ts";
import { type AliasRecord, aliasResource } from "./alias.ts";

export interface AliasServiceDeps {
  readonly stores: ProviderStores;
  readonly names: ProjectNames;
  readonly changes: ModelChanges;
  readonly access: ProjectAccess;
  readonly audit: AuditService;
  readonly clock: Clock;
}

interface AliasName {
  readonly projectId: string;
  readonly name: string;
}

const MAX_ALIASES = 200;

/** Aliases: a project's names for ordered lists of models. */
export class AliasService {
  readonly #deps: AliasServiceDeps;

  constructor(deps: AliasServiceDeps) {
    this.#deps = deps;
  }

  /** Sorted by name; `page.after` is a name. @throws DomainError not_found */
  async list(
    caller: UserPrincipal,
    projectId: string,
    page: { readonly after: string | null; readonly limit: number },
  ): Promise<readonly AliasRecord[]> {
    await this.#deps.access.require(caller, projectId, "provider.read");
    const all = await this.#deps.stores.aliases.list(projectId);
    return all.filter(({ name }) => page.after === null || name > page.after).slice(0, page.limit);
  }

  /** @throws DomainError not_found */
  async get(caller: UserPrincipal, { projectId, name }: AliasName): Promise<AliasRecord> {
    await this.#deps.access.require(caller, projectId, "provider.read");
    const alias = await this.#deps.stores.aliases.find(projectId, name);
    if (alias === null) throw aliasNotFound();
    return alias;
  }

  /** Creates or replaces an alias. @throws DomainError not_found, permission_denied, already_exists, invalid_request */
  async put(caller: UserPrincipal, input: AliasName & Pick<AliasRecord, "targets">): Promise<AliasRecord> {
    const { projectId, name, targets } = input;
    const { access, stores, names, changes, clock } = this.#deps;
    await access.require(caller, projectId, "provider.manage");
    const alias = await stores.transaction(async (inside, transaction) => {
      await access.requireWithin(transaction, { caller, projectId, operation: "provider.manage" });
      await names.requireFree(transaction, { projectId, name, unless: "alias" });
      const current = await inside.aliases.find(projectId, name);
      if (current?.targets.join("\n") === targets.join("\n")) return current;
      if (current === null && (await inside.aliases.list(projectId)).length >= MAX_ALIASES) throw tooMany();
      await this.#requireKnown(transaction, projectId, targets);
      const now = clock.now();
      const record = { projectId, name, targets, createdAt: current?.createdAt ?? now, updatedAt: now };
      await inside.aliases.put(record);
      const detail = { targets: targets.join(", ") };
      const resource = aliasResource(name);
      const entry = { actor: caller, action: "alias.put", projectId, resource, detail } as const;
      await this.#deps.audit.record(transaction, entry);
      return record;
    });
    changes.emit(projectId);
    return alias;
  }

  /** @throws DomainError not_found, permission_denied, project_deleting */
  async delete(caller: UserPrincipal, { projectId, name }: AliasName): Promise<void> {
    const { access, stores, audit, changes } = this.#deps;
    await access.require(caller, projectId, "provider.manage");
    await stores.transaction(async (inside, transaction) => {
      await access.requireWithin(transaction, { caller, projectId, operation: "provider.manage" });
      if ((await inside.aliases.find(projectId, name)) === null) throw aliasNotFound();
      await inside.aliases.delete(projectId, name);
      const resource = aliasResource(name);
      await audit.record(transaction, { actor: caller, action: "alias.delete", projectId, resource });
    });
    changes.emit(projectId);
  }

  /** Detects misspelt providers before the first call. Which models exist may change. */
  async #requireKnown(transaction: Kysely<Database>, projectId: string, targets: readonly string[]): Promise<void> {
    const known = await this.#deps.names.upstreams(transaction, projectId);
    const index = targets.findIndex((target) => !known.has(splitModelName(target)?.provider ?? ""));
    if (index === -1) return;
    const message = `\`targets[${index}]\`: "${targets[index]}" does not start with a provider or node of this project.`;
    throw new DomainError("invalid_request", message, { param: `targets[${index}]` });
  }
}

function aliasNotFound(): DomainError {
  return new DomainError("not_found", "This project has no such alias.");
}

function tooMany(): DomainError {
  return new DomainError("invalid_request", `The project has the maximum of ${MAX_ALIASES} aliases. Delete one first.`);
}
