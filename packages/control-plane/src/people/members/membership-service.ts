import type { Role } from "@fairlead/protocol/resources";
import type { Kysely } from "kysely";
import type { Membership, Memberships } from "../../access/auth/access.ts";
import type { Database } from "../../installation/db/tables/schema.ts";
import type { MembershipRecord } from "./member.ts";
import { MemberStore } from "./member-store.ts";

/** Project membership. Read from the store on every call, so changes take effect immediately. */
export class MembershipService implements Memberships {
  readonly #members: MemberStore;

  constructor({ db }: { readonly db: Kysely<Database> }) {
    this.#members = new MemberStore(db);
  }

  /** Called when a project is created. */
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
