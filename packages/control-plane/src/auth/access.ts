import { DomainError } from "@fairlead/protocol/errors";
import type { Role } from "@fairlead/protocol/resources";
import type { UserPrincipal } from "./principal.ts";

/** Who may do what in a project: one table, operation × role (design §4, Roles). */

const EVERYBODY = ["owner", "admin", "member", "viewer"] as const;
const WORKERS = ["owner", "admin", "member"] as const;
const OPERATORS = ["owner", "admin"] as const;
const OWNERS = ["owner"] as const;

export const ROLES_BY_OPERATION = {
  "project.read": EVERYBODY,
  "project.update": OPERATORS,
  "project.delete": OWNERS,
  "member.list": EVERYBODY,
  "member.manage": OPERATORS,
  "key.list": EVERYBODY,
  "key.create": WORKERS,
  "key.manage": OPERATORS,
  "audit.read": OPERATORS,
  "node.read": EVERYBODY,
  "node.create": OPERATORS,
  "node.bootstrap": OPERATORS,
  "node.update": OPERATORS,
  "node.delete": OPERATORS,
  "node.secrets": OPERATORS,
} as const satisfies Record<string, readonly Role[]>;

export type Operation = keyof typeof ROLES_BY_OPERATION;

export function mayDo(role: Role, operation: Operation): boolean {
  return ROLES_BY_OPERATION[operation].some((allowed) => allowed === role);
}

/** Where roles come from; the projects service. */
export interface Memberships {
  /** @returns null for somebody who is no member, and for a project that does not exist. */
  roleOf(projectId: string, userId: string): Promise<Role | null>;
  rolesOf(userId: string): Promise<readonly { readonly projectId: string; readonly role: Role }[]>;
  rolesOf(userId: string): Promise<readonly { readonly projectId: string; readonly role: Role }[]>;
}

export class ProjectAccess {
  readonly #memberships: Memberships;

  constructor(memberships: Memberships) {
    this.#memberships = memberships;
  }

  /**
   * The caller's role, when it may do this.
   * @throws DomainError `not_found` to strangers, who must not learn that the project exists; `permission_denied` to members.
   */
  async require(caller: UserPrincipal, projectId: string, operation: Operation): Promise<Role> {
    const role = await this.#memberships.roleOf(projectId, caller.userId);
    if (role === null) throw new DomainError("not_found", "There is no such project among yours.");
    if (mayDo(role, operation)) return role;
    const allowed = ROLES_BY_OPERATION[operation].join(" or ");
    throw new DomainError("permission_denied", `Your role in this project is ${role}; this takes ${allowed}.`);
  }

  /** Ids of the caller's projects in which they may do this. */
  async projectsOf(caller: UserPrincipal, operation: Operation): Promise<readonly string[]> {
    const roles = await this.#memberships.rolesOf(caller.userId);
    return roles.filter(({ role }) => mayDo(role, operation)).map(({ projectId }) => projectId);
  }
}
