import { rfc3339 } from "@fairlead/protocol/clock";
import { type Invitation, type Member, ROLES, type Role } from "@fairlead/protocol/resources";

/** Who belongs to a project, as what, and who may change that. Pure. */

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

/** How long an invitation is good for (design §5). */
export const INVITATION_LIFE_MS = 7 * 24 * 3_600_000;

/** Whether somebody in this role may invite others as that, or give it to a member. */
export function mayGive(role: Role, given: Role): boolean {
  if (role === "owner") return true;
  return role === "admin" && given !== "owner";
}

/** Roles that somebody in this role may not give. */
export function rolesBeyond(role: Role): readonly Role[] {
  return ROLES.filter((given) => !mayGive(role, given));
}

/** What somebody wants to do to a member; `to` is null where they are to be no member any more. */
export interface MemberChange {
  readonly by: Role;
  readonly from: Role;
  readonly to: Role | null;
  /** They do it to themselves. */
  readonly self: boolean;
  /** In the whole project. */
  readonly owners: number;
}

/** Why a change is refused; null: it may be made. */
export type Refusal = "permission_denied" | "last_owner" | null;

/** Anybody may leave; an admin manages whoever is no owner; only owners touch owners or make them; the last owner stays one. */
export function refusalOf({ by, from, to, self, owners }: MemberChange): Refusal {
  const leaves = self && to === null;
  if (!leaves && !(mayGive(by, from) && (to === null || mayGive(by, to)))) return "permission_denied";
  return from === "owner" && to !== "owner" && owners <= 1 ? "last_owner" : null;
}

/** The one that may more. */
export function higherRole(a: Role, b: Role): Role {
  return ROLES.indexOf(a) <= ROLES.indexOf(b) ? a : b;
}

export function toMember({ createdAt, ...member }: MemberRecord): Member {
  return { ...member, createdAt: rfc3339(createdAt) };
}

export function toInvitation({ createdAt, expiresAt, ...invitation }: InvitationRecord): Invitation {
  return { ...invitation, createdAt: rfc3339(createdAt), expiresAt: rfc3339(expiresAt) };
}
