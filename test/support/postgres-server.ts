import { execFile, execFileSync } from "node:child_process";
import { chownSync, existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { freePorts } from "@fairlead/protocol/testing/free-ports";
import { describe, test } from "vitest";
import { Program, type RunAs } from "./program.ts";
import { waitFor } from "./wait-for.ts";

const run = promisify(execFile);
const UP_MS = 30_000;
const POOL = "/usr/sbin/pgbouncer";
/** PostgreSQL refuses to run as root, so it runs as the Debian package's user. */
const SYSTEM_USER = "postgres";
/** Its files are thrown away, so nothing needs to reach the disk. */
const SETTINGS = ["listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off", "shared_buffers=32MB"];

/** A suite that breaks a PostgreSQL of its own. Where this machine cannot run one it is one skipped test that says why. */
export function describeWithPostgres(name: string, suite: () => void): void {
  const reason = whyNoPostgres();
  if (reason === null) describe(name, suite);
  else test(name, ({ skip }) => skip(reason));
}

function whyNoPostgres(): string | null {
  if (programs() === undefined) return "PostgreSQL 15 or later is not installed";
  if (!existsSync(POOL)) return "pgbouncer is not installed";
  return null;
}

/** The newest version's folder. */
function programs(): string | undefined {
  const version = (initdb: string): number => Number(/(\d+)\/bin\/initdb$/.exec(initdb)?.[1]);
  const [newest] = globSync("/usr/lib/postgresql/*/bin/initdb").sort((a, b) => version(b) - version(a));
  return newest === undefined ? undefined : dirname(newest);
}

function systemUser(): RunAs {
  if (process.getuid?.() !== 0) return {};
  const id = (flag: string): number => Number(execFileSync("id", [flag, SYSTEM_USER], { encoding: "utf8" }));
  return { uid: id("-u"), gid: id("-g") };
}

/** A folder that only it and root can read. */
function ownFolder({ uid, gid }: RunAs): string {
  const dir = mkdtempSync(join(tmpdir(), "fairlead-postgres-"));
  if (uid !== undefined && gid !== undefined) chownSync(dir, uid, gid);
  return dir;
}

/** PostgreSQL, alone or as another's standby, to be broken by tests. */
export class PostgresServer {
  readonly port: number;
  readonly #user: RunAs;
  readonly #dir: string;
  #program: Program | null = null;

  private constructor(port: number, user: RunAs) {
    this.port = port;
    this.#user = user;
    this.#dir = ownFolder(user);
  }

  /** With an empty database, ready. */
  static async create(): Promise<PostgresServer> {
    const server = new PostgresServer(await freePorts(1), systemUser());
    const how = ["--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"];
    await server.#run("initdb", [...how, `--pgdata=${server.#data}`]);
    await server.start();
    return server;
  }

  /** `host:port`, as in a URL of several hosts. */
  get host(): string {
    return `127.0.0.1:${this.port}`;
  }

  get url(): string {
    return `postgres://postgres@${this.host}/postgres`;
  }

  async start(): Promise<void> {
    const settings = [...SETTINGS, `port=${this.port}`].flatMap((setting) => ["-c", setting]);
    const command = [join(programs() ?? "", "postgres"), "-D", this.#data, ...settings];
    const program = new Program(command, join(this.#dir, "log"), this.#user);
    this.#program = program;
    await waitFor("PostgreSQL", UP_MS, async () => !program.running || (await this.query("select 1")) === "1");
    if (!program.running) throw new Error(`PostgreSQL ended at once:\n${program.lastLines()}`);
  }

  /** @param mode `fast` ends sessions in order, `immediate` is a crash. */
  async stop(mode: "fast" | "immediate"): Promise<void> {
    process.kill(this.#running.pid, mode === "fast" ? "SIGINT" : "SIGQUIT");
    await this.#running.ended;
  }

  /** It hangs: connections stay, are even accepted, and nobody answers. */
  freeze(): void {
    process.kill(this.#running.pid, "SIGSTOP");
    for (const pid of this.#children()) process.kill(pid, "SIGSTOP");
  }

  thaw(): void {
    for (const pid of this.#children()) process.kill(pid, "SIGCONT");
    process.kill(this.#running.pid, "SIGCONT");
  }

  /** The session that has been connected for longest hangs, for good. */
  async freezeOldestSession(): Promise<void> {
    const oldest =
      "select pid from pg_stat_activity where backend_type = 'client backend' order by backend_start limit 1";
    process.kill(Number(await this.query(oldest)), "SIGSTOP");
  }

  /** @returns what `psql` prints: a line per row, columns between bars. */
  async query(sql: string): Promise<string> {
    return psql(this.url, sql);
  }

  /** A standby that has all of it, without whose word nothing is committed from now on. */
  async createStandby(): Promise<PostgresServer> {
    const standby = new PostgresServer(await freePorts(1), this.#user);
    const how = ["--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync"];
    await standby.#run("pg_basebackup", [...how, `--pgdata=${standby.#data}`, `--dbname=${this.url}`]);
    await standby.start();
    await this.configure("synchronous_standby_names", "*");
    const state = "select sync_state from pg_stat_replication";
    await waitFor("the standby", UP_MS, async () => (await this.query(state)) === "sync");
    return standby;
  }

  /** Of a standby: it takes writes from now on. */
  async promote(): Promise<void> {
    await this.query("select pg_promote()");
  }

  /** Without a restart. */
  async configure(setting: string, value: string): Promise<void> {
    await this.query(`alter system set ${setting} = '${value}'`);
    await this.query("select pg_reload_conf()");
    await waitFor(setting, UP_MS, async () => (await this.query(`show ${setting}`)) === value);
  }

  async remove(): Promise<void> {
    if (this.#program?.running === true) {
      this.thaw();
      await this.stop("immediate");
    }
    rmSync(this.#dir, { recursive: true, force: true });
  }

  get #data(): string {
    return join(this.#dir, "data");
  }

  get #running(): Program {
    if (this.#program?.running !== true) throw new Error("this PostgreSQL does not run");
    return this.#program;
  }

  #children(): number[] {
    const { pid } = this.#running;
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
    return children.split(" ").filter(Boolean).map(Number);
  }

  async #run(program: string, args: readonly string[]): Promise<void> {
    await run(join(programs() ?? "", program), [...args], { cwd: "/", ...this.#user });
  }
}

async function psql(url: string, sql: string): Promise<string> {
  const how = ["--no-psqlrc", "--quiet", "--tuples-only", "--no-align"];
  const { stdout } = await run(join(programs() ?? "", "psql"), [...how, `--command=${sql}`, url]);
  return stdout.trim();
}

/** PgBouncer in transaction mode, as Debian has it, in front of a PostgreSQL. */
export class PgBouncer {
  readonly url: string;
  readonly #dir: string;
  readonly #program: Program;

  private constructor(port: number, dir: string, user: RunAs) {
    this.url = `postgres://postgres@127.0.0.1:${port}/postgres`;
    this.#dir = dir;
    this.#program = new Program([POOL, join(dir, "pgbouncer.ini")], join(dir, "log"), user);
  }

  /** @param connections to PostgreSQL; fewer than a server opens to us, so that it gets another one with each transaction. */
  static async start(behind: PostgresServer, connections: number): Promise<PgBouncer> {
    const user = systemUser();
    const [dir, port] = [ownFolder(user), await freePorts(1)];
    writeFileSync(join(dir, "users"), '"postgres" ""\n');
    const lines = [
      "[databases]",
      `postgres = host=127.0.0.1 port=${behind.port}`,
      "[pgbouncer]",
      "listen_addr = 127.0.0.1",
      `listen_port = ${port}`,
      "unix_socket_dir =",
      "auth_type = trust",
      `auth_file = ${join(dir, "users")}`,
      "pool_mode = transaction",
      `default_pool_size = ${connections}`,
      // By default it would leave a PostgreSQL that is back alone for up to 15 seconds.
      "server_login_retry = 1",
    ];
    writeFileSync(join(dir, "pgbouncer.ini"), `${lines.join("\n")}\n`);
    const pool = new PgBouncer(port, dir, user);
    await waitFor("PgBouncer", UP_MS, async () => (await psql(pool.url, "select 1")) === "1");
    return pool;
  }

  async stop(): Promise<void> {
    await this.#program.stop();
    rmSync(this.#dir, { recursive: true, force: true });
  }
}
