import { DomainError } from "@fairlead/protocol/errors";
import type { Role } from "@fairlead/protocol/resources";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { IdSource } from "@fairlead/protocol/values/ids";
import type { Kysely } from "kysely";
import type { AuditService } from "../../access/audit/audit-service.ts";
import { type Memberships, ProjectAccess, projectNotFound } from "../../access/auth/access.ts";
import type { UserPrincipal } from "../../access/auth/principal.ts";
import { always, type Once } from "../../access/idempotency/once.ts";
import type { Database } from "../../installation/db/tables/schema.ts";
import { ModelChanges } from "../../models/names/model-changes.ts";
import { type ProjectRecord, projectResource } from "./project.ts";
import type { ProjectStores } from "./project-stores.ts";

/** The part of the membership service that projects use. */
interface ProjectMemberships extends Memberships {
  /** Adds a member in the transaction that creates the project. */
  add(transaction: Kysely<Database>, owner: ProjectOwner): Promise<void>;
}

/** The user who creates the project. */
interface ProjectOwner {
  readonly projectId: string;
  readonly userId: string;
  readonly role: "owner";
  /** Unix milliseconds. */
  readonly createdAt: number;
}

export interface ProjectServiceDeps {
  readonly stores: ProjectStores;
  readonly memberships: ProjectMemberships;
  readonly audit: AuditService;
  readonly clock: Clock;
  readonly ids: IdSource;
}

export interface ProjectChange {
  readonly name?: string | undefined;
  /** Null: use the server's default. */
  readonly defaultModel?: string | null | undefined;
}

/** Projects. All other resources check `access` before touching a project's rows. */
export class ProjectService {
  readonly access: ProjectAccess;
  /** Projects whose default model changed. */
  readonly modelChanges = new ModelChanges();
  readonly #deps: ProjectServiceDeps;

  constructor(deps: ProjectServiceDeps) {
    this.#deps = deps;
    this.access = new ProjectAccess(deps.memberships);
  }

  /** Any user can create a project, and becomes its owner. */
  async create(
    caller: UserPrincipal,
    input: { readonly name: string },
    once: Once<ProjectRecord> = always,
  ): Promise<ProjectRecord> {
    const { stores, memberships, audit, clock, ids } = this.#deps;
    const now = clock.now();
    const project: ProjectRecord = {
      id: ids.next("project"),
      userId: caller.userId,
      name: input.name,
      createdAt: now,
      updatedAt: now,
      deletingSince: null,
      defaultModel: null,
    };
    return stores.transaction(({ projects }, transaction) =>
      once(transaction, async () => {
        await projects.insert(project);
        const owner = { projectId: project.id, userId: caller.userId, role: "owner", createdAt: now } as const;
        await memberships.add(transaction, owner);
        await audit.record(transaction, {
          actor: caller,
          action: "project.create",
          projectId: project.id,
          resource: projectResource(project),
        });
        return project;
      }),
    );
  }

  /** @throws DomainError not_found */
  async get(caller: UserPrincipal, projectId: string): Promise<ProjectRecord> {
    await this.access.require(caller, projectId, "project.read");
    const project = await this.#deps.stores.projects.find(projectId);
    if (!project) throw projectNotFound();
    return project;
  }

  /** Omitted fields are unchanged. @throws DomainError not_found, permission_denied, project_deleting */
  async update(caller: UserPrincipal, projectId: string, change: ProjectChange): Promise<ProjectRecord> {
    const { stores, clock } = this.#deps;
    await this.access.require(caller, projectId, "project.update");
    const project = await stores.transaction(async ({ projects }, transaction) => {
      await this.access.requireWithin(transaction, { caller, projectId, operation: "project.update" });
      const before = await projects.find(projectId);
      if (!before) throw projectNotFound();
      const { name = before.name, defaultModel = before.defaultModel } = change;
      if (name === before.name && defaultModel === before.defaultModel) return before;
      const after = await projects.update(projectId, { name, defaultModel, now: clock.now() });
      if (!after) throw projectNotFound();
      await this.#recordChange(transaction, caller, { before, after });
      return after;
    });
    this.modelChanges.emit(projectId);
    return project;
  }

  /** For the inference host. @returns null if the project has none. */
  async defaultModelOf(projectId: string): Promise<string | null> {
    return (await this.#deps.stores.projects.find(projectId))?.defaultModel ?? null;
  }

  /** For the holder of an invitation, who is not a member yet. @throws DomainError not_found */
  async nameOf(projectId: string): Promise<string> {
    const project = await this.#deps.stores.projects.find(projectId);
    if (project?.deletingSince !== null) throw new DomainError("not_found", "This project no longer exists.");
    return project.name;
  }

  /** The caller's projects, oldest first. */
  async list(
    caller: UserPrincipal,
    page: { readonly after: string | null; readonly limit: number },
  ): Promise<readonly ProjectRecord[]> {
    return this.#deps.stores.projects.listOfUser(caller.userId, page);
  }

  async rolesOf(userId: string): Promise<readonly { readonly projectId: string; readonly role: Role }[]> {
    return this.#deps.memberships.rolesOf(userId);
  }

  async #recordChange(
    transaction: Kysely<Database>,
    actor: UserPrincipal,
    { before, after }: { readonly before: ProjectRecord; readonly after: ProjectRecord },
  ): Promise<void> {
    const entry = { actor, projectId: after.id, resource: projectResource(after) };
    if (after.name !== before.name) {
      const detail = { before: before.name };
      await this.#deps.audit.record(transaction, { ...entry, action: "project.rename", detail });
    }
    if (after.defaultModel !== before.defaultModel) {
      const detail = { before: before.defaultModel, after: after.defaultModel };
      await this.#deps.audit.record(transaction, { ...entry, action: "project.default_model", detail });
    }
  }
}
