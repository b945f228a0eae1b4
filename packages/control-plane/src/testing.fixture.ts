import type { Clock } from "@fairlead/protocol/clock";
import { encodeId, type IdSource } from "@fairlead/protocol/ids";
import type { UserPrincipal } from "./auth/principal.ts";
import { migrate } from "./db/migrate.ts";
import { openDatabase, type OpenedDatabase } from "./db/open.ts";
import { UserStore } from "./users/user-store.ts";

/** What many tests stand on: time that only the test moves, ids in order, a migrated store. */

export class TestClock implements Clock {
  #now = Date.UTC(2026, 0, 1);

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#now;
  }

  advance(milliseconds: number): void {
    this.#now += milliseconds;
  }
}

/** Ids that sort in the order they were made. */
export function countingIds(): IdSource {
  let count = 0;
  return {
    next: (kind) => {
      count += 1;
      return encodeId(kind, count, new Uint8Array(10));
    },
  };
}

/** A store of its own for one test; every store's contract suite takes such a function, so that it can run on each database. */
export type OpenStore = () => Promise<OpenedDatabase>;

export const openMemoryStore: OpenStore = async () => {
  const store = openDatabase({ file: ":memory:" });
  await migrate(store.db, { clock: new TestClock() });
  return store;
};

export function asUser(userId: string): UserPrincipal {
  return { kind: "user", userId: userId as UserPrincipal["userId"], platformAdmin: false };
}

/** Puts a user into the store, since most rows belong to one. */
export async function insertUser(store: OpenedDatabase, id: string): Promise<UserPrincipal> {
  const user = { id, email: `${id}@example.org`, name: id, platformAdmin: false, createdAt: 0 };
  await new UserStore(store.db).insert(user);
  return asUser(id);
}
