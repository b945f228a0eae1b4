import { randomBytes } from "node:crypto";
import type { Role } from "@fairlead/protocol/resources";
import { countingIds, TestClock } from "@fairlead/protocol/testing/test-clock";
import { AuditService } from "../../access/audit/audit-service.ts";
import { ProjectAccess } from "../../access/auth/access.ts";
import type { UserPrincipal } from "../../access/auth/principal.ts";
import type { OpenedDatabase } from "../../installation/db/open.ts";
import { insertProject, insertUser, type OpenStore } from "../../testing.fixture.ts";
import { OneTimeLinkService } from "../one-time-links/one-time-link-service.ts";
import { InvitationService } from "./invitation-service.ts";
import { MemberService, type MemberServiceDeps } from "./member-service.ts";
import { MemberStore } from "./member-store.ts";
import { MembershipService } from "./membership-service.ts";

/** The services of this room on a store of their own, with a project `prj_1` in which nobody is yet. */
export interface MemberFixture {
  readonly store: OpenedDatabase;
  readonly clock: TestClock;
  readonly members: MemberService;
  readonly invitations: InvitationService;
  /** Ids that were handed to the key service to be forgotten. */
  readonly forgotten: string[];
  /** Makes a user, and a member where a role is given. */
  add(name: string, role?: Role): Promise<UserPrincipal>;
  roleOf(name: string): Promise<Role | null>;
  /** A project key of somebody's. */
  addKey(id: string, owner: string): Promise<void>;
  enabledKeys(): Promise<string[]>;
  /** The whole log, the oldest first: `action resource`. */
  audit(): Promise<string[]>;
  close(): Promise<void>;
}

export const PROJECT = "prj_1";
export const PUBLIC_URL = "https://fairlead.example.org";

export async function memberFixture(open: OpenStore): Promise<MemberFixture> {
  const store = await open();
  const { db } = store;
  const clock = new TestClock();
  const ids = countingIds();
  const audit = new AuditService({ clock, ids });
  const access = new ProjectAccess(new MembershipService({ db }));
  const links = new OneTimeLinkService({ db, clock, ids, randomBytes });
  const forgotten: string[] = [];
  const keys = keysOn(forgotten);
  await insertUser(store, "usr_creator");
  await insertProject(store, PROJECT, "usr_creator");
  const rows = new MemberStore(db);
  return {
    store,
    clock,
    forgotten,
    members: new MemberService({ db, access, keys, links, audit }),
    invitations: new InvitationService({ db, access, links, audit, clock, publicUrl: PUBLIC_URL }),
    add: async (name, role) => {
      const user = await insertUser(store, `usr_${name}`);
      if (role) await rows.insert({ projectId: PROJECT, userId: user.userId, role, createdAt: clock.now() });
      return user;
    },
    roleOf: async (name) => (await rows.find(PROJECT, `usr_${name}`))?.role ?? null,
    addKey: async (id, owner) => {
      const secret = { public_id: id, secret_hash: id };
      const previous = {
        previous_public_id: null,
        previous_secret_hash: null,
        previous_ends_at: null,
        previous_last_used_at: null,
      };
      const facts = { name: id, enabled: 1, expires_at: null, created_at: 0, limits: "{}", last_used_at: null };
      const row = { id, project_id: PROJECT, user_id: `usr_${owner}`, ...secret, ...previous, ...facts };
      await db.insertInto("project_key").values(row).execute();
    },
    enabledKeys: async () => {
      const rowsOf = db.selectFrom("project_key").select("id").where("enabled", "=", 1).orderBy("id");
      return (await rowsOf.execute()).map(({ id }) => id);
    },
    audit: async () => {
      const events = await db.selectFrom("audit_event").selectAll().orderBy("id").execute();
      return events.map((event) => `${event.action} ${event.resource_id}`);
    },
    close: () => store.close(),
  };
}

/** As the key service does it, without its caches. */
function keysOn(forgotten: string[]): MemberServiceDeps["keys"] {
  return {
    disableKeysOf: async (transaction, projectId, userId) => {
      const ofMember = transaction
        .updateTable("project_key")
        .set({ enabled: 0 })
        .where("project_id", "=", projectId)
        .where("user_id", "=", userId);
      return (await ofMember.returning("id").execute()).map(({ id }) => id);
    },
    forget: (ids) => void forgotten.push(...ids),
  };
}
