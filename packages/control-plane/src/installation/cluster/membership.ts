import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { isTimeLimit } from "@fairlead/hosting/errors/store-errors";
import type { Clock } from "@fairlead/protocol/values/clock";
import { type IdSource, isId } from "@fairlead/protocol/values/ids";
import type { Logger } from "pino";
import type { Fence } from "../db/fence.ts";
import { openDatabase } from "../db/open.ts";
import { StartError } from "../process/start-error.ts";
import { type OtherReplica, type Replica, ReplicaStore } from "./replica-store.ts";

const BOOT_ID_FILE = "/proc/sys/kernel/random/boot_id";

interface Instance {
  /** Of the data folder, and of each copy of it: the same after a restart. */
  readonly id: string;
  /** The file and the boot of the machine: the folder's lock shows that no other process has the same. */
  readonly place: string;
}

/** Makes the id at its first use. The caller holds the folder's lock. */
function instanceOf(dataDir: string, ids: IdSource): Instance {
  const file = join(dataDir, "instance-id");
  const known = readIfThere(file);
  const id = known !== null && isId("replica", known) ? known : ids.next("replica");
  if (id !== known) writeFileSync(file, `${id}\n`, { mode: 0o600 });
  const { dev, ino } = statSync(file);
  return { id, place: `${readIfThere(BOOT_ID_FILE) ?? ""} ${dev}:${ino}` };
}

function readIfThere(file: string): string | null {
  try {
    return readFileSync(file, "utf8").trim();
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw error;
  }
}

/** This process as a user of the store (decisions/0045). */
export interface ServerMembership {
  /** Owner of running holds and turns. */
  readonly incarnation: string;
  /** Null on SQLite, where the data folder's lock serves the same purpose. */
  readonly fence: Fence | null;
  /** Resolves when another server has taken over: this process must exit. */
  readonly fenced: Promise<void>;
  /** Incarnations of running processes, including this one. */
  living(): Promise<readonly string[]>;
  leave(): Promise<void>;
}

export interface MembershipDeps {
  readonly dataDir: string;
  /** Undefined with SQLite. */
  readonly url: string | undefined;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly log: Logger;
  /** How long to wait for a running server, which may be about to stop. */
  readonly patienceMs: number;
  readonly times?: LeaseTimes;
}

export interface LeaseTimes {
  /** A server that does not renew its row for this long while the database is reachable has lost its place. */
  readonly leaseMs: number;
  readonly renewMs: number;
  /** Polling interval of a waiting server. */
  readonly pollMs: number;
}

const TIMES: LeaseTimes = { leaseMs: 10_000, renewMs: 2000, pollMs: 500 };
/** Covers the shutdown of the previous server. */
export const SERVER_PATIENCE_MS = TIMES.leaseMs + 5000;
/** Limit for waiting on a flapping database. */
const MAX_WAIT_MS = 60_000;
const LIMITS = { connections: 1, connectMs: 2000, statementMs: 2000, maxWaiting: 10 };

/** The caller holds the data folder's lock. @throws StartError if another server is running on the database, or it cannot be used. */
export async function joinStore(deps: MembershipDeps): Promise<ServerMembership> {
  const { dataDir, url, ids } = deps;
  const incarnation = ids.next("incarnation");
  if (url === undefined) return aloneOn(incarnation);
  // A separate connection, so that renewals do not queue behind queries.
  const opened = openDatabase({ url }, { limits: LIMITS });
  try {
    const replica = { ...instanceOf(dataDir, ids), incarnation };
    const store = new ReplicaStore(opened.db);
    await new Joining(store, replica, deps).run();
    return new LeasedMembership(store, { ...deps, incarnation, close: () => opened.close() });
  } catch (error) {
    await opened.close();
    throw error;
  }
}

/** For uses that need only the data folder's lock. */
export function aloneOn(incarnation: string): ServerMembership {
  return {
    incarnation,
    fence: null,
    fenced: Promise.withResolvers<void>().promise,
    living: async () => [incarnation],
    leave: async () => undefined,
  };
}

interface Watched {
  readonly seenAt: string;
  /** First time it was seen in this state, by our monotonic clock. */
  readonly since: number;
}

/** Waits to join. Takes over from a server only after seeing it idle for a whole lease. */
class Joining {
  readonly #store: ReplicaStore;
  readonly #own: Replica;
  readonly #deps: MembershipDeps;
  readonly #times: LeaseTimes;
  #watched = new Map<string, Watched>();
  #isRenewed = false;

  constructor(store: ReplicaStore, own: Replica, deps: MembershipDeps) {
    this.#store = store;
    this.#own = own;
    this.#deps = deps;
    this.#times = deps.times ?? TIMES;
  }

  async run(): Promise<void> {
    const { clock, log, patienceMs } = this.#deps;
    const began = clock.monotonic();
    for (let tries = 0; ; tries++) {
      const others = await this.#try(tries === 0);
      if (others?.length === 0) return;
      if (tries === 0)
        log.info(
          { leaseMs: this.#times.leaseMs },
          "another server was using this database; waiting for its lease to expire",
        );
      if (others !== null) this.#watch(others);
      const waited = clock.monotonic() - began;
      if ((this.#isRenewed && waited >= patienceMs) || waited >= MAX_WAIT_MS) {
        throw new StartError(
          "Another server is running on this PostgreSQL database. Stop it, or set database.url to another database.",
        );
      }
      await delay(this.#times.pollMs);
    }
  }

  /** @returns null while the database is unreachable or the row is locked. */
  async #try(isFirst: boolean): Promise<readonly OtherReplica[] | null> {
    try {
      return await this.#store.join(this.#own, this.#dead());
    } catch (error) {
      // The lock of another server's last transaction is temporary.
      if (isTimeLimit(error)) return null;
      const why = error instanceof Error ? error.message : String(error);
      if (isFirst) throw new StartError(`The database at database.url cannot be used: ${why}.`);
      // The other server may not reach it either, so its lease restarts.
      this.#watched.clear();
      return null;
    }
  }

  #dead(): OtherReplica[] {
    const now = this.#deps.clock.monotonic();
    return [...this.#watched].flatMap(([incarnation, { seenAt, since }]) =>
      now - since >= this.#times.leaseMs ? [{ incarnation, seenAt }] : [],
    );
  }

  #watch(others: readonly OtherReplica[]): void {
    const now = this.#deps.clock.monotonic();
    const before = this.#watched;
    this.#watched = new Map(
      others.map(({ incarnation, seenAt }) => {
        const watched = before.get(incarnation);
        if (watched?.seenAt === seenAt) return [incarnation, watched];
        if (watched !== undefined) this.#isRenewed = true;
        return [incarnation, { seenAt, since: now }];
      }),
    );
  }
}

interface LeaseDeps extends Pick<MembershipDeps, "clock" | "log" | "times"> {
  readonly incarnation: string;
  close(): Promise<void>;
}

/** Renews the row until `leave`, or until it is gone. */
class LeasedMembership implements ServerMembership {
  readonly incarnation: string;
  readonly fence: Fence;
  readonly fenced: Promise<void>;
  readonly #store: ReplicaStore;
  readonly #deps: LeaseDeps;
  readonly #lose: () => void;
  #timer: NodeJS.Timeout | null = null;
  #renewing: Promise<void> | null = null;
  #leaving: Promise<void> | null = null;
  #left = false;
  #failing = false;

  constructor(store: ReplicaStore, deps: LeaseDeps) {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.incarnation = deps.incarnation;
    this.fenced = promise;
    this.#lose = resolve;
    this.fence = { incarnation: deps.incarnation, lost: () => this.#lost() };
    this.#store = store;
    this.#deps = deps;
    this.#schedule();
  }

  living(): Promise<readonly string[]> {
    return this.#store.living();
  }

  leave(): Promise<void> {
    this.#leaving ??= this.#leave();
    return this.#leaving;
  }

  async #leave(): Promise<void> {
    this.#left = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.#renewing;
    // On failure, the next server waits for one lease.
    await this.#store.leave(this.incarnation).catch(() => undefined);
    await this.#deps.close();
  }

  #lost(): void {
    if (this.#left) return;
    this.#left = true;
    this.#deps.log.fatal("another server has taken over this database; this server is stopping");
    this.#lose();
  }

  #schedule(): void {
    if (this.#left) return;
    this.#timer = setTimeout(
      () => {
        this.#renewing = this.#renew().finally(() => {
          this.#renewing = null;
          this.#schedule();
        });
      },
      (this.#deps.times ?? TIMES).renewMs,
    );
    this.#timer.unref();
  }

  async #renew(): Promise<void> {
    const { log } = this.#deps;
    try {
      const held = await this.#store.renew(this.incarnation);
      if (!held) this.#lost();
      if (this.#failing) log.info("this server's lease is being renewed again");
      this.#failing = false;
    } catch (error) {
      if (!this.#failing) log.warn({ err: error }, "this server's lease cannot be renewed; retrying");
      this.#failing = true;
    }
  }
}
