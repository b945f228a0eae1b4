import type { Clock } from "@fairlead/protocol/clock";
import { DomainError } from "@fairlead/protocol/errors";
import type { IdSource } from "@fairlead/protocol/ids";
import type { Role } from "@fairlead/protocol/resources";
import type { Kysely } from "kysely";
import type { AuditService } from "../audit/audit-service.ts";
import { ProjectAccess, projectNotFound } from "../auth/access.ts";
import type { UserPrincipal } from "../auth/principal.ts";
import type { Database } from "../db/schema.ts";
import { always, type Once } from "../idempotency/once.ts";
import type { MembershipService } from "../members/membership-service.ts";
import { ModelChanges } from "../providers/model-changes.ts";
import { type ProjectRecord, projectResource } from "./project.ts";
import type { ProjectStores } from "./project-stores.ts";

export interface ProjectServiceDeps {
  readonly stores: ProjectStores;
  readonly memberships: MembershipService;
  readonly audit: AuditService;
  readonly clock: Clock;
  readonly ids: IdSource;
}

export interface ProjectChange {
  readonly name?: string | undefined;
  /** Null: the server's. */
  readonly defaultModel?: string | null | undefined;
}

/** Projects. Every other resource asks `access` before it touches a project's rows. */
export class ProjectService {
  readonly access: ProjectAccess;
  /** Of projects whose default model is another now. */
  readonly modelChanges = new ModelChanges();
  readonly #deps: ProjectServiceDeps;

  constructor(deps: ProjectServiceDeps) {
    this.#deps = deps;
    this.access = new ProjectAccess(deps.memberships);
  }

  /** Any user may create a project, and owns it. */
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

  /** What is absent stays. @throws DomainError not_found, permission_denied, project_deleting */
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

  /** For the inference host. @returns null where the project says nothing. */
  async defaultModelOf(projectId: string): Promise<string | null> {
    return (await this.#deps.stores.projects.find(projectId))?.defaultModel ?? null;
  }

  /** For somebody who holds an invitation, and is no member yet. @throws DomainError not_found */
  async nameOf(projectId: string): Promise<string> {
    const project = await this.#deps.stores.projects.find(projectId);
    if (project?.deletingSince !== null) throw new DomainError("not_found", "There is no such project any more.");
    return project.name;
  }

  /** The caller's own projects, the oldest first. */
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
