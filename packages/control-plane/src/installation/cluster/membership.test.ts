import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@fairlead/protocol/values/clock";
import { systemIds } from "@fairlead/protocol/values/ids";
import { sql } from "kysely";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { STORES } from "../../testing.fixture.ts";
import { FencedError } from "../db/fence.ts";
import { type OpenedDatabase, openDatabase } from "../db/open.ts";
import { StartError } from "../process/start-error.ts";
import { joinStore, type MembershipDeps, type ServerMembership } from "./membership.ts";

const TIMES = { leaseMs: 600, renewMs: 100, pollMs: 50 };
const PATIENCE_MS = 1000;
/** A server that waited for this lease would exceed the time of a test. */
const LONG_LEASE = { ...TIMES, leaseMs: 3_600_000 };

test("on SQLite, where the data folder's lock keeps others out, nothing is fenced and only this process is alive", async () => {
  const membership = await joinStore(depsOf("/nowhere", undefined));
  expect(membership.fence).toBeNull();
  expect(await membership.living()).toEqual([membership.incarnation]);
  await membership.leave();
});

describe.each(STORES.filter(({ name }) => name === "PostgreSQL"))("the server lease on $name", (postgres) => {
  let dir: string;
  let url: string;
  let dropStore: () => Promise<void>;
  let joined: ServerMembership[];
  let opened: OpenedDatabase[];

  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), "fairlead-membership-"));
    const shared = await postgres.openShared("");
    if (!("url" in shared.location)) throw new Error("PostgreSQL has a URL");
    ({ url } = shared.location);
    dropStore = () => shared.close();
    joined = [];
    opened = [];
  });
  afterEach(async () => {
    await Promise.all(joined.map((membership) => membership.leave()));
    await Promise.all(opened.map((store) => store.close()));
    await dropStore();
    await rm(dir, { recursive: true });
  });

  const folder = async (): Promise<string> => mkdtemp(join(dir, "data-"));
  const joinAs = async (dataDir: string, change: Partial<MembershipDeps> = {}): Promise<ServerMembership> => {
    const membership = await joinStore({ ...depsOf(dataDir, url), ...change });
    joined.push(membership);
    return membership;
  };
  /** A process that was killed: it renews nothing, and its row stays. */
  const killed = async (dataDir: string): Promise<ServerMembership> =>
    joinStore({ ...depsOf(dataDir, url), times: { ...TIMES, renewMs: 3_600_000 } });
  const open = (fence: ServerMembership["fence"]): OpenedDatabase => {
    const store = openDatabase({ url }, { fence });
    opened.push(store);
    return store;
  };

  test("is refused to a second server while the first renews it", async () => {
    await joinAs(await folder());
    const began = performance.now();
    await expect(joinAs(await folder())).rejects.toSatisfy(
      (error) =>
        error instanceof StartError &&
        error.message.startsWith("Another server is running on this PostgreSQL database"),
    );
    expect(performance.now() - began).toBeGreaterThanOrEqual(PATIENCE_MS);
  });

  test("is refused to an operator's command as soon as the server is seen renewing it", async () => {
    await joinAs(await folder());
    await expect(joinAs(await folder(), { patienceMs: 0, times: LONG_LEASE })).rejects.toBeInstanceOf(StartError);
  });

  test("is free immediately after its server leaves", async () => {
    const first = await joinAs(await folder());
    await first.leave();
    const second = await joinAs(await folder());
    expect(await second.living()).toEqual([second.incarnation]);
  });

  test("passes from a server that did not renew it in time, which then writes nothing more and is notified", async () => {
    const first = await killed(await folder());
    const store = open(first.fence);
    await sql`create table thing (n int)`.execute(store.db);
    await sql`insert into thing values (1)`.execute(store.db);
    const began = performance.now();
    const second = await joinAs(await folder());
    expect(performance.now() - began).toBeGreaterThanOrEqual(TIMES.leaseMs);
    await expect(sql`insert into thing values (2)`.execute(store.db)).rejects.toBeInstanceOf(FencedError);
    await expect(sql`update thing set n = 2`.execute(store.writes)).rejects.toBeInstanceOf(FencedError);
    await expect(store.db.transaction().execute(async () => undefined)).rejects.toBeInstanceOf(FencedError);
    await first.fenced;
    expect((await sql<{ n: number }>`select n from thing`.execute(store.db)).rows).toEqual([{ n: 1 }]);
    await sql`insert into thing values (3)`.execute(open(second.fence).db);
    await first.leave();
    expect(await second.living()).toEqual([second.incarnation]);
  });

  test("is not taken over in the middle of a transaction", async () => {
    const first = await killed(await folder());
    const store = open(first.fence);
    await sql`create table thing (n int)`.execute(store.db);
    const inside = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    const writing = store.db.transaction().execute(async (transaction) => {
      await sql`insert into thing values (1)`.execute(transaction);
      inside.resolve();
      await release.promise;
    });
    await inside.promise;
    let isIn = false;
    const second = joinAs(await folder()).then((membership) => {
      isIn = true;
      return membership;
    });
    await expect
      .poll(
        async () =>
          (
            await sql`select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like 'delete from replica%'`.execute(
              store.longReads,
            )
          ).rows.length,
      )
      .toBeGreaterThan(0);
    expect(isIn).toBe(false);
    release.resolve();
    await writing;
    await second;
    await first.leave();
  });

  test("is returned immediately when a killed server restarts", async () => {
    const dataDir = await folder();
    await killed(dataDir);
    const again = await joinAs(dataDir, { times: LONG_LEASE, patienceMs: LONG_LEASE.leaseMs });
    expect(await again.living()).toEqual([again.incarnation]);
  });

  test("is not granted to a copy of the data folder", async () => {
    const dataDir = await folder();
    await joinAs(dataDir);
    const copy = join(dir, "copy");
    await cp(dataDir, copy, { recursive: true });
    await expect(joinAs(copy)).rejects.toBeInstanceOf(StartError);
  });

  test("is not granted immediately to a copy of the data folder, even if the database was away for longer than a lease", async () => {
    const dataDir = await folder();
    await killed(dataDir);
    await sql`update replica set seen_at = now() - interval '1 hour'`.execute(open(null).db);
    const copy = join(dir, "copy");
    await cp(dataDir, copy, { recursive: true });
    const began = performance.now();
    await joinAs(copy);
    expect(performance.now() - began).toBeGreaterThanOrEqual(TIMES.leaseMs);
  });

  test("is waited for while a killed server's last transaction still holds it", async () => {
    const dataDir = await folder();
    const first = await killed(dataDir);
    const last = await open(first.fence).db.startTransaction().execute();
    const lines: string[] = [];
    const log = pino({}, { write: (line: string) => lines.push(line) });
    const again = joinAs(dataDir, { log, patienceMs: 10_000 });
    try {
      await expect.poll(() => lines.join("")).toContain("waiting for its lease to expire");
    } finally {
      await last.rollback().execute();
    }
    expect(await (await again).living()).toEqual([(await again).incarnation]);
  });

  test("goes to one of two servers that start at the same moment on an empty database", async () => {
    const results = await Promise.allSettled([joinAs(await folder()), joinAs(await folder())]);
    expect(results.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
  });
});

function depsOf(dataDir: string, url: string | undefined): MembershipDeps {
  const ids = systemIds(() => systemClock.now());
  const log = pino({ level: "silent" });
  return { dataDir, url, clock: systemClock, ids, log, patienceMs: PATIENCE_MS, times: TIMES };
}
