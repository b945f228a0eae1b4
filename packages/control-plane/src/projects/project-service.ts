import type { Clock } from "@fairlead/protocol/clock";
import { DomainError } from "@fairlead/protocol/errors";
import type { IdSource } from "@fairlead/protocol/ids";
import type { Role } from "@fairlead/protocol/resources";
import type { AuditService } from "../audit/audit-service.ts";
import { type Memberships, ProjectAccess } from "../auth/access.ts";
import type { UserPrincipal } from "../auth/principal.ts";
import { always, type Once } from "../idempotency/once.ts";
import type { ProjectRecord } from "./project.ts";
import type { ProjectStores } from "./project-stores.ts";

export interface ProjectServiceDeps {
  readonly stores: ProjectStores;
  readonly audit: AuditService;
  readonly clock: Clock;
  readonly ids: IdSource;
}

/** Projects and who is in them. Every other resource asks `access` before it touches a project's rows. */
export class ProjectService implements Memberships {
  readonly access: ProjectAccess;
  readonly #deps: ProjectServiceDeps;

  constructor(deps: ProjectServiceDeps) {
    this.#deps = deps;
    this.access = new ProjectAccess(this);
  }

  /** Any user may create a project, and owns it. */
  async create(
    caller: UserPrincipal,
    input: { readonly name: string },
    once: Once<ProjectRecord> = always,
  ): Promise<ProjectRecord> {
    const { stores, audit, clock, ids } = this.#deps;
    const now = clock.now();
    const project: ProjectRecord = {
      id: ids.next("project"),
      userId: caller.userId,
      name: input.name,
      createdAt: now,
      updatedAt: now,
    };
    return stores.transaction(({ projects, members }, transaction) =>
      once(transaction, async () => {
        await projects.insert(project);
        await members.insert({ projectId: project.id, userId: caller.userId, role: "owner", createdAt: now });
        await audit.record(transaction, {
          actor: caller,
          action: "project.create",
          projectId: project.id,
          resource: { type: "project", id: project.id, name: project.name },
        });
        return project;
      }),
    );
  }

  /** @throws DomainError not_found */
  async get(caller: UserPrincipal, projectId: string): Promise<ProjectRecord> {
    await this.access.require(caller, projectId, "project.read");
    const project = await this.#deps.stores.projects.find(projectId);
    if (!project) throw new DomainError("not_found", "There is no such project among yours.");
    return project;
  }

  /** For somebody who holds an invitation, and is no member yet. @throws DomainError not_found */
  async nameOf(projectId: string): Promise<string> {
    const project = await this.#deps.stores.projects.find(projectId);
    if (!project) throw new DomainError("not_found", "There is no such project any more.");
    return project.name;
  }

  /** The caller's own projects, the oldest first. */
  async list(
    caller: UserPrincipal,
    page: { readonly after: string | null; readonly limit: number },
  ): Promise<readonly ProjectRecord[]> {
    return this.#deps.stores.projects.listOfUser(caller.userId, page);
  }

  async roleOf(projectId: string, userId: string): Promise<Role | null> {
    return this.#deps.stores.members.roleOf(projectId, userId);
  }

  async rolesOf(userId: string): Promise<readonly { readonly projectId: string; readonly role: Role }[]> {
    return this.#deps.stores.members.rolesOf(userId);
  }
}
