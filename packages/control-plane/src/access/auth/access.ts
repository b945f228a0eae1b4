import { DomainError } from "@fairlead/protocol/errors";
import type { Role } from "@fairlead/protocol/resources";
import type { Kysely } from "kysely";
import type { Database } from "../../installation/db/tables/schema.ts";
import type { UserPrincipal } from "./principal.ts";

/** Permissions in a project: operation × role. */

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
  "invitation.list": OPERATORS,
  "key.list": EVERYBODY,
  "key.create": WORKERS,
  "key.manage": OPERATORS,
  "audit.read": OPERATORS,
  "billing.read": EVERYBODY,
  "billing.ledger": OPERATORS,
  "usage.read": EVERYBODY,
  "chat.read": EVERYBODY,
  "chat.use": WORKERS,
  "provider.read": EVERYBODY,
  "provider.manage": OPERATORS,
  "node.read": EVERYBODY,
  "node.create": OPERATORS,
  "node.bootstrap": OPERATORS,
  "node.update": OPERATORS,
  "node.delete": OPERATORS,
  "node.drain": OPERATORS,
  "node.resume": OPERATORS,
  "node.restart": OPERATORS,
  "node.logs": OPERATORS,
  "node.connect": OPERATORS,
  "node.secrets": OPERATORS,
  "node.sweep": OPERATORS,
  "agent.read": EVERYBODY,
  "agent.create": OPERATORS,
  "agent.update": OPERATORS,
  "agent.start": OPERATORS,
  "agent.stop": OPERATORS,
  "agent.delete": OPERATORS,
  "agent.logs": OPERATORS,
  "agent.connect": OPERATORS,
  "agent.secrets": OPERATORS,
} as const satisfies Record<string, readonly Role[]>;

export type Operation = keyof typeof ROLES_BY_OPERATION;

export function mayDo(role: Role, operation: Operation): boolean {
  return ROLES_BY_OPERATION[operation].some((allowed) => allowed === role);
}

/** Operations allowed while a project is being deleted: its owners see the progress and may retry. */
const WHILE_DELETING: ReadonlySet<Operation> = new Set([
  "project.read",
  "project.delete",
  "member.list",
  "invitation.list",
  "key.list",
  "provider.read",
  "chat.read",
  "node.read",
  "agent.read",
  "audit.read",
  "billing.read",
  "billing.ledger",
  "usage.read",
]);

export interface Membership {
  readonly role: Role;
  /** The project is being deleted. */
  readonly deleting: boolean;
}

/** Source of roles, implemented by the members room. */
export interface Memberships {
  /** @returns null for non-members and unknown projects. */
  membershipOf(projectId: string, userId: string): Promise<Membership | null>;
  /** In a transaction, with the project's row locked until its end. */
  holdMembership(transaction: Kysely<Database>, projectId: string, userId: string): Promise<Membership | null>;
  /** Excludes projects that the user can no longer see. */
  rolesOf(userId: string): Promise<readonly { readonly projectId: string; readonly role: Role }[]>;
}

export class ProjectAccess {
  readonly #memberships: Memberships;

  constructor(memberships: Memberships) {
    this.#memberships = memberships;
  }

  /**
   * The caller's role, if it allows the operation.
   * @throws DomainError `not_found` to strangers, who must not learn that the project exists; `permission_denied` to members; `project_deleting` to
   * owners of a project that is being deleted
   */
  async require(caller: UserPrincipal, projectId: string, operation: Operation): Promise<Role> {
    return judge(await this.#memberships.membershipOf(projectId, caller.userId), operation);
  }

  /**
   * Inside the transaction of a change: locks the caller's role and the project until its end.
   * Call `require` first, so that strangers never lock rows.
   */
  async requireWithin(transaction: Kysely<Database>, { caller, projectId, operation }: ProjectCall): Promise<Role> {
    return judge(await this.#memberships.holdMembership(transaction, projectId, caller.userId), operation);
  }

  /** Ids of the projects in which the caller may do this. */
  async projectsOf(caller: UserPrincipal, operation: Operation): Promise<readonly string[]> {
    const roles = await this.#memberships.rolesOf(caller.userId);
    return roles.filter(({ role }) => mayDo(role, operation)).map(({ projectId }) => projectId);
  }
}

interface ProjectCall {
  readonly caller: Pick<UserPrincipal, "userId">;
  readonly projectId: string;
  readonly operation: Operation;
}

function judge(membership: Membership | null, operation: Operation): Role {
  if (membership === null || (membership.deleting && membership.role !== "owner")) throw projectNotFound();
  const { role, deleting } = membership;
  if (!mayDo(role, operation)) {
    const allowed = ROLES_BY_OPERATION[operation].join(" or ");
    throw new DomainError("permission_denied", `Your role in this project is ${role}. This requires ${allowed}.`);
  }
  if (deleting && !WHILE_DELETING.has(operation)) throw projectDeleting();
  return role;
}

export function projectNotFound(): DomainError {
  return new DomainError("not_found", "There is no project with this ID, or you are not a member of it.");
}

export function projectDeleting(): DomainError {
  return new DomainError("project_deleting", "This project is being deleted and cannot be changed.");
}
