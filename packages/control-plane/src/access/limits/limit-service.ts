import { DomainError } from "@fairlead/protocol/errors";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { AuditService } from "../audit/audit-service.ts";
import type { ProjectAccess } from "../auth/access.ts";
import { FactCache } from "../auth/fact-cache.ts";
import type { UserPrincipal } from "../auth/principal.ts";
import {
  type CallLimits,
  changeLimits,
  effectiveLimits,
  LIMIT_NAMES,
  type ProjectLimitsChange,
  widened,
} from "./call-limits.ts";
import type { LimitStore } from "./limit-store.ts";

export interface LimitServiceDeps {
  readonly limits: LimitStore;
  /** The server's default limits. */
  readonly server: CallLimits;
  readonly access: ProjectAccess;
  readonly audit: AuditService;
  /** For the project's name. */
  readonly projects: { nameOf(projectId: string): Promise<string> };
  readonly clock: Clock;
}

const MAX_PROJECTS = 10_000;
/** The same as for known keys while the store does not respond. */
const GRACE_MS = 5 * 60_000;

/** Rate limits of projects. */
export class LimitService {
  readonly server: CallLimits;
  readonly #deps: LimitServiceDeps;
  readonly #effective: FactCache<CallLimits>;

  constructor(deps: LimitServiceDeps) {
    this.#deps = deps;
    this.server = deps.server;
    const read = async (projectId: string): Promise<CallLimits> =>
      effectiveLimits(await deps.limits.find(projectId), deps.server);
    this.#effective = new FactCache({ read, clock: deps.clock, max: MAX_PROJECTS, graceMs: GRACE_MS });
  }

  /** The limits in effect; on every call's path. @throws the store's error */
  effective(projectId: string): CallLimits | Promise<CallLimits> {
    // A row always exists.
    return this.#effective.find(projectId) as CallLimits | Promise<CallLimits>;
  }

  /** The project's own limits. @throws DomainError not_found */
  async get(caller: UserPrincipal, projectId: string): Promise<CallLimits> {
    const { access, projects, limits } = this.#deps;
    if (caller.platformAdmin) await projects.nameOf(projectId);
    else await access.require(caller, projectId, "project.read");
    return limits.find(projectId);
  }

  /**
   * Owners and admins set limits up to the server's; only platform administrators can exceed them.
   * @throws DomainError not_found, permission_denied, project_deleting
   */
  async update(caller: UserPrincipal, projectId: string, change: ProjectLimitsChange): Promise<CallLimits> {
    const { limits, access, audit, projects } = this.#deps;
    if (!caller.platformAdmin) {
      await access.require(caller, projectId, "project.update");
      this.#refuseWider(change);
    }
    const name = await projects.nameOf(projectId);
    const after = await limits.transaction(async (store, transaction) => {
      if (!caller.platformAdmin) {
        await access.requireWithin(transaction, { caller, projectId, operation: "project.update" });
      }
      const before = await store.findForUpdate(projectId);
      const changed = changeLimits(before, change);
      const fields = LIMIT_NAMES.filter((field) => changed[field] !== before[field]);
      if (fields.length === 0) return before;
      await store.set(projectId, changed);
      await audit.record(transaction, {
        actor: caller,
        action: "project.limits",
        projectId,
        resource: { type: "project", id: projectId, name },
        detail: Object.fromEntries(fields.map((field) => [field, changed[field]])),
      });
      return changed;
    });
    this.#effective.forget(projectId);
    return after;
  }

  #refuseWider(change: ProjectLimitsChange): void {
    const [field] = widened(change, this.server);
    if (field === undefined) return;
    const message = `\`${field}\`: the server's limit per project is ${this.server[field]}. Only platform administrators can set a higher limit.`;
    throw new DomainError("permission_denied", message, { param: field });
  }
}
