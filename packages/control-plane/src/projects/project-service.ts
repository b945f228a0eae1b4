import type { Clock } from "@fairlead/protocol/clock";
import { DomainError } from "@fairlead/protocol/errors";
import type { IdSource } from "@fairlead/protocol/ids";
import type { Role } from "@fairlead/protocol/resources";
import type { AuditService } from "../audit/audit-service.ts";
import { ProjectAccess, projectNotFound } from "../auth/access.ts";
import type { UserPrincipal } from "../auth/principal.ts";
import { always, type Once } from "../idempotency/once.ts";
import type { MembershipService } from "../members/membership-service.ts";
import { type ProjectRecord, projectResource } from "./project.ts";
import type { ProjectStores } from "./project-stores.ts";

export interface ProjectServiceDeps {
  readonly stores: ProjectStores;
  readonly memberships: MembershipService;
  readonly audit: AuditService;
  readonly clock: Clock;
  readonly ids: IdSource;
}

/** Projects. Every other resource asks `access` before it touches a project's rows. */
export class ProjectService {
  readonly access: ProjectAccess;
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

  /** @throws DomainError not_found, permission_denied, project_deleting */
  async rename(caller: UserPrincipal, projectId: string, name: string): Promise<ProjectRecord> {
    const { stores, audit, clock } = this.#deps;
    await this.access.require(caller, projectId, "project.update");
    return stores.transaction(async ({ projects }, transaction) => {
      await this.access.requireWithin(transaction, { caller, projectId, operation: "project.update" });
      const current = await projects.find(projectId);
      if (current?.name === name) return current;
      const project = await projects.rename(projectId, { name, now: clock.now() });
      if (!current || !project) throw projectNotFound();
      const detail = { before: current.name };
      const resource = projectResource(project);
      await audit.record(transaction, { actor: caller, action: "project.rename", projectId, resource, detail });
      return project;
    });
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
}
