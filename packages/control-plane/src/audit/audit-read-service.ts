import { DomainError } from "@fairlead/protocol/errors";
import type { Kysely } from "kysely";
import type { ProjectAccess } from "../auth/access.ts";
import type { UserPrincipal } from "../auth/principal.ts";
import type { Database } from "../db/schema.ts";
import type { AuditEventRecord } from "./audit.ts";
import { type AuditFilter, AuditStore } from "./audit-store.ts";

export interface AuditReadDeps {
  /** The handle for long work: a filter may have to look at many rows. */
  readonly longReads: Kysely<Database>;
  readonly access: ProjectAccess;
}

interface StorePage {
  readonly limit: number;
  readonly after: string | null;
}

/** What people may read of the audit log. */
export class AuditReadService {
  readonly #store: AuditStore;
  readonly #access: ProjectAccess;

  constructor({ longReads, access }: AuditReadDeps) {
    this.#store = new AuditStore(longReads);
    this.#access = access;
  }

  /** One project's events, the newest first. @throws DomainError not_found, permission_denied */
  async list(
    caller: UserPrincipal,
    projectId: string,
    { page, ...filter }: AuditFilter & { readonly page: StorePage },
  ): Promise<readonly AuditEventRecord[]> {
    await this.#access.require(caller, projectId, "audit.read");
    return this.#store.list(projectId, filter, page);
  }

  /** Events of every project and of none, the newest first. @throws DomainError permission_denied */
  async listAll(
    caller: UserPrincipal,
    { page, ...filter }: AuditFilter & { readonly page: StorePage },
  ): Promise<readonly AuditEventRecord[]> {
    if (!caller.platformAdmin) {
      throw new DomainError("permission_denied", "This takes a platform administrator.");
    }
    return this.#store.listAll(filter, page);
  }
}
