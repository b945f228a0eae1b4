import type { Kysely } from "kysely";
import type { AuditService } from "../../access/audit/audit-service.ts";
import type { Database } from "../../installation/db/tables/schema.ts";
import type { Ports } from "../../installation/installation-room.ts";
import { MembershipService } from "../members/membership-service.ts";
import { CachedProjectOwners } from "./project-owners.ts";
import { ProjectService } from "./project-service.ts";
import { projectStores } from "./project-stores.ts";

interface ProjectOptions extends Ports {
  readonly db: Kysely<Database>;
  readonly audit: AuditService;
}

export type Projects = ReturnType<typeof openProjects>;

/** Projects and who may do what in them: the room that most others ask. */
export function openProjects({ db, audit, clock, ids }: ProjectOptions) {
  const stores = projectStores(db);
  const memberships = new MembershipService({ db });
  const projects = new ProjectService({ clock, ids, audit, stores, memberships });
  return {
    memberships,
    projects,
    access: projects.access,
    owners: new CachedProjectOwners(stores.projects),
    projectStores: stores,
  };
}
