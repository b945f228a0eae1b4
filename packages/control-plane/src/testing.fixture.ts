import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { Role } from "@fairlead/protocol/resources";
import { TestClock } from "@fairlead/protocol/testing/test-clock";
import { sql } from "kysely";
import type { Memberships } from "./access/auth/access.ts";
import type { UserPrincipal } from "./access/auth/principal.ts";
import { migrate } from "./installation/db/migrations/migrate.ts";
import { type OpenedDatabase, openDatabase, type StoreLocation } from "./installation/db/open.ts";
import { UserStore } from "./people/users/user-store.ts";

/** What many tests stand on: a migrated store, people and projects. */

/** A store of its own for one test; every store's contract suite takes such a function, so that it can run on each database. */
export type OpenStore = () => Promise<OpenedDatabase>;

/** Where `./scripts/test` has started a PostgreSQL for the tests; any database that the tests may make schemas in. */
const POSTGRES_URL = process.env["FAIRLEAD_TEST_POSTGRES_URL"];

interface SharedStore {
  readonly location: StoreLocation;
  close(): Promise<void>;
}

/** A schema of its own in the tests' PostgreSQL, gone when it is closed. */
async function openPostgresSchema(): Promise<SharedStore> {
  if (POSTGRES_URL === undefined) throw new Error("FAIRLEAD_TEST_POSTGRES_URL is not set");
  const schema = `t_${randomBytes(8).toString("hex")}`;
  const admin = openDatabase({ url: POSTGRES_URL });
  await sql`create schema ${sql.id(schema)}`.execute(admin.db);
  const url = new URL(POSTGRES_URL);
  url.searchParams.set("options", `-c search_path=${schema}`);
  return {
    location: { url: url.href },
    close: async () => {
      await sql`drop schema ${sql.id(schema)} cascade`.execute(admin.db);
      await admin.close();
    },
  };
}

interface StoreKind {
  readonly name: string;
  /** A place for a store that several programs may open. @param dir a server's data folder, or another of the test's own. */
  readonly openShared: (dir: string) => Promise<SharedStore>;
  /** A store of its own, without a schema yet. */
  readonly openEmpty: OpenStore;
  /** The same with the program's schema. */
  readonly open: OpenStore;
}

const SQLITE = storeKind({
  name: "SQLite",
  openShared: async (dir) => ({ location: { file: join(dir, "fairlead.db") }, close: async () => undefined }),
  openEmpty: async () => openDatabase({ file: ":memory:" }),
});

const POSTGRES = storeKind({
  name: "PostgreSQL",
  openShared: openPostgresSchema,
  openEmpty: async () => {
    const schema = await openPostgresSchema();
    const store = openDatabase(schema.location);
    return {
      ...store,
      close: async () => {
        await store.close();
        await schema.close();
      },
    };
  },
});

function storeKind(kind: Omit<StoreKind, "open">): StoreKind {
  return {
    ...kind,
    open: async () => {
      const store = await kind.openEmpty();
      await migrate(store.db, { clock: new TestClock() });
      return store;
    },
  };
}

/** For `describe.each`: every test that touches the store runs on both databases, where there is a PostgreSQL. */
export const STORES: readonly StoreKind[] = POSTGRES_URL === undefined ? [SQLITE] : [SQLITE, POSTGRES];

export const openMemoryStore: OpenStore = SQLITE.open;

export function asUser(userId: string): UserPrincipal {
  return { kind: "user", userId: userId as UserPrincipal["userId"], platformAdmin: false };
}

/** Puts a user into the store, since most rows belong to one. */
export async function insertUser(store: OpenedDatabase, id: string): Promise<UserPrincipal> {
  const user = { id, email: `${id}@example.org`, name: id, platformAdmin: false, createdAt: 0 };
  await new UserStore(store.db).insert(user);
  return asUser(id);
}

/** Puts a project into the store that belongs to nobody yet. @param userId its creator. */
export async function insertProject(store: OpenedDatabase, id: string, userId: string): Promise<void> {
  const row = {
    id,
    user_id: userId,
    name: id,
    created_at: 0,
    updated_at: 0,
    deleting_since: null,
    default_model: null,
  };
  await store.db.insertInto("project").values(row).execute();
}

/** Roles that stand fast, for whoever needs somebody's access and no members' room. */
export function fixedMemberships(roleOf: (projectId: string, userId: string) => Role | null): Memberships {
  const membershipOf: Memberships["membershipOf"] = async (projectId, userId) => {
    const role = roleOf(projectId, userId);
    return role && { role, deleting: false };
  };
  return {
    membershipOf,
    holdMembership: async (transaction, projectId, userId) => {
      const hold = transaction.updateTable("project").set((eb) => ({ created_at: eb.ref("created_at") }));
      await hold.where("id", "=", projectId).execute();
      return membershipOf(projectId, userId);
    },
    rolesOf: async () => [],
  };
}
