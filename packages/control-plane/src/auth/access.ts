import { DomainError } from "@fairlead/protocol/errors";
import type { Role } from "@fairlead/protocol/resources";
import type { Kysely } from "kysely";
import type { Database } from "../db/schema.ts";
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

/** What goes on in a project that is being deleted: its owners see how far it is, and may ask again. */
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

/** Where roles come from; the members' room. */
export interface Memberships {
  /** @returns null for somebody who is no member, and for a project that does not exist. */
  membershipOf(projectId: string, userId: string): Promise<Membership | null>;
  /** The same inside a transaction, with the project's row held until its end. */
  holdMembership(transaction: Kysely<Database>, projectId: string, userId: string): Promise<Membership | null>;
  /** Without projects that the user cannot see any more. */
  rolesOf(userId: string): Promise<readonly { readonly projectId: string; readonly role: Role }[]>;
}

export class ProjectAccess {
  readonly #memberships: Memberships;

  constructor(memberships: Memberships) {
    this.#memberships = memberships;
  }

  /**
   * The caller's role, when it may do this.
   * @throws DomainError `not_found` to strangers, who must not learn that the project exists; `permission_denied` to members;
   * `project_deleting` to owners of a project that is being deleted, which does not exist for others any more.
   */
  async require(caller: UserPrincipal, projectId: string, operation: Operation): Promise<Role> {
    return judge(await this.#memberships.membershipOf(projectId, caller.userId), operation);
  }

  /**
   * The same inside the transaction of a change: until its end nobody takes the caller's role away, and nobody deletes the project.
   * For what would outlive either. Ask `require` before, so that nobody holds rows of projects that are not theirs.
   */
  async requireWithin(transaction: Kysely<Database>, { caller, projectId, operation }: ProjectCall): Promise<Role> {
    return judge(await this.#memberships.holdMembership(transaction, projectId, caller.userId), operation);
  }

  /** Ids of the caller's projects in which they may do this. */
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
    throw new DomainError("permission_denied", `Your role in this project is ${role}; this takes ${allowed}.`);
  }
  if (deleting && !WHILE_DELETING.has(operation)) throw projectDeleting();
  return role;
}

export function projectNotFound(): DomainError {
  return new DomainError("not_found", "There is no such project among yours.");
}

export function projectDeleting(): DomainError {
  return new DomainError("project_deleting", "This project is being deleted: nothing in it can be changed any more.");
}
