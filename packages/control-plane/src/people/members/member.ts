import { type Invitation, type Member, ROLES, type Role } from "@fairlead/protocol/resources";
import { rfc3339 } from "@fairlead/protocol/values/clock";

/** Project roles, and who may change them. Pure. */

export interface MembershipRecord {
  readonly projectId: string;
  readonly userId: string;
  readonly role: Role;
  /** Unix milliseconds. */
  readonly createdAt: number;
}

export interface MemberRecord extends MembershipRecord {
  readonly email: string;
}

/** An open invitation. Times are Unix milliseconds. */
export interface InvitationRecord {
  readonly id: string;
  readonly projectId: string;
  readonly email: string;
  readonly role: Role;
  readonly createdAt: number;
  readonly expiresAt: number;
}

/** How long an invitation is valid (docs/projects.md). */
export const INVITATION_LIFE_MS = 7 * 24 * 3_600_000;

/** Whether a member with this role may grant the given role. */
export function mayGive(role: Role, given: Role): boolean {
  if (role === "owner") return true;
  return role === "admin" && given !== "owner";
}

/** Roles that a member with this role may not grant. */
export function rolesBeyond(role: Role): readonly Role[] {
  return ROLES.filter((given) => !mayGive(role, given));
}

/** A requested change of a member's role; `to` is null to remove the member. */
export interface MemberChange {
  readonly by: Role;
  readonly from: Role;
  readonly to: Role | null;
  /** The member changes their own role. */
  readonly self: boolean;
  /** Number of owners of the project. */
  readonly owners: number;
}

/** Why the change is rejected; null: it is allowed. */
export type MemberRefusal = "permission_denied" | "last_owner" | null;

/** Any member may leave. Admins manage everyone except owners. Only owners may change or appoint owners. The last owner must stay one. */
export function memberRefusalOf({ by, from, to, self, owners }: MemberChange): MemberRefusal {
  const leaves = self && to === null;
  if (!leaves && !(mayGive(by, from) && (to === null || mayGive(by, to)))) return "permission_denied";
  return from === "owner" && to !== "owner" && owners <= 1 ? "last_owner" : null;
}

/** The role with more permissions. */
export function higherRole(a: Role, b: Role): Role {
  return ROLES.indexOf(a) <= ROLES.indexOf(b) ? a : b;
}

export function toMember({ createdAt, ...member }: MemberRecord): Member {
  return { ...member, createdAt: rfc3339(createdAt) };
}

export function toInvitation({ createdAt, expiresAt, ...invitation }: InvitationRecord): Invitation {
  return { ...invitation, createdAt: rfc3339(createdAt), expiresAt: rfc3339(expiresAt) };
}
