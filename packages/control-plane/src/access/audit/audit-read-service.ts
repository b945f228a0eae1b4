import { DomainError } from "@fairlead/protocol/errors";
import type { Kysely } from "kysely";
import type { Database } from "../../installation/db/tables/schema.ts";
import type { ProjectAccess } from "../auth/access.ts";
import type { UserPrincipal } from "../auth/principal.ts";
import type { AuditEventRecord } from "./audit.ts";
import { type AuditFilter, AuditStore } from "./audit-store.ts";

export interface AuditReadDeps {
  /** The long-work handle: a filter may scan many rows. */
  readonly longReads: Kysely<Database>;
  readonly access: ProjectAccess;
}

interface StorePage {
  readonly limit: number;
  readonly after: string | null;
}

/** Read access to the audit log. */
export class AuditReadService {
  readonly #store: AuditStore;
  readonly #access: ProjectAccess;

  constructor({ longReads, access }: AuditReadDeps) {
    this.#store = new AuditStore(longReads);
    this.#access = access;
  }

  /** Events of one project, newest first. @throws DomainError not_found, permission_denied */
  async list(
    caller: UserPrincipal,
    projectId: string,
    { page, ...filter }: AuditFilter & { readonly page: StorePage },
  ): Promise<readonly AuditEventRecord[]> {
    await this.#access.require(caller, projectId, "audit.read");
    return this.#store.list(projectId, filter, page);
  }

  /** Events of all projects and outside projects, newest first. @throws DomainError permission_denied */
  async listAll(
    caller: UserPrincipal,
    { page, ...filter }: AuditFilter & { readonly page: StorePage },
  ): Promise<readonly AuditEventRecord[]> {
    if (!caller.platformAdmin) {
      throw new DomainError("permission_denied", "This requires a platform administrator.");
    }
    return this.#store.listAll(filter, page);
  }
}
