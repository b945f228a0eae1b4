import type { Role } from "@fairlead/protocol/resources";
import type { Kysely } from "kysely";
import type { Membership, Memberships } from "../auth/access.ts";
import type { Database } from "../db/schema.ts";
import type { MembershipRecord } from "./member.ts";
import { MemberStore } from "./member-store.ts";

/** Who is in which project, as what. Read from the store at every call, so a change counts at once. */
export class MembershipService implements Memberships {
  readonly #members: MemberStore;

  constructor({ db }: { readonly db: Kysely<Database> }) {
    this.#members = new MemberStore(db);
  }

  /** For whoever makes the project. */
  async add(transaction: Kysely<Database>, member: MembershipRecord): Promise<void> {
    await new MemberStore(transaction).insert(member);
  }

  async membershipOf(projectId: string, userId: string): Promise<Membership | null> {
    return this.#members.membershipOf(projectId, userId);
  }

  async holdMembership(transaction: Kysely<Database>, projectId: string, userId: string): Promise<Membership | null> {
    const members = new MemberStore(transaction);
    await members.holdProject(projectId);
    return members.membershipOf(projectId, userId);
  }

  async rolesOf(userId: string): Promise<readonly { readonly projectId: string; readonly role: Role }[]> {
    return this.#members.rolesOf(userId);
  }
}
