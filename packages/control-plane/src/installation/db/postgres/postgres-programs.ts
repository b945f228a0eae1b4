import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { StartError } from "../../process/start-error.ts";
import { REPLICA_TABLE } from "../fence.ts";
import { splitHosts } from "./postgres-url.ts";

/** Runs `pg_dump` and `pg_restore`, the only way to copy a PostgreSQL store consistently. */

/** Search path of programs; nothing else of our environment is passed on. */
const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/** libpq parameters in a URL and their environment variables. */
const PARAMETERS: Readonly<Record<string, string>> = {
  sslmode: "PGSSLMODE",
  sslrootcert: "PGSSLROOTCERT",
  sslcert: "PGSSLCERT",
  sslkey: "PGSSLKEY",
  options: "PGOPTIONS",
};

/** @param schema the store's own; the database may contain others. @throws StartError */
export async function dumpPostgres(url: string, { schema, file }: PostgresDump): Promise<void> {
  await run("pg_dump", url, [
    "--format=custom",
    "--no-owner",
    "--no-privileges",
    `--schema=${schema}`,
    `--exclude-table=${schema}.${REPLICA_TABLE}`,
    `--file=${file}`,
  ]);
}

/** Into an existing empty schema, all or nothing. @throws StartError */
export async function restorePostgres(url: string, { schema, file }: PostgresDump): Promise<void> {
  const how = ["--no-owner", "--no-privileges", "--single-transaction", "--exit-on-error", `--schema=${schema}`];
  await run("pg_restore", url, [...how, `--dbname=${databaseOf(url)}`, file]);
}

export interface PostgresDump {
  readonly schema: string;
  readonly file: string;
}

async function run(program: string, url: string, args: readonly string[]): Promise<void> {
  const child = spawn(program, args, { env: variablesOf(url), stdio: ["ignore", "ignore", "pipe"] });
  const words = text(child.stderr);
  try {
    const [code] = (await once(child, "close")) as [number | null];
    if (code !== 0) throw new StartError(`${program} failed: ${(await words).trim()}`);
  } catch (error) {
    if (!(error instanceof Error) || !("code" in error) || error.code !== "ENOENT") throw error;
    throw new StartError(
      `The store is a PostgreSQL database, and ${program} is not installed. Install PostgreSQL's client programs ` +
        "(Debian: apt-get install postgresql-client), in the server's version or a newer one.",
    );
  }
}

/** Passed in the environment, because arguments are visible to everyone on the machine. */
function variablesOf(url: string): Record<string, string> {
  const hosts = splitHosts(url).map((host) => new URL(host));
  const [first] = hosts;
  if (first === undefined) throw new Error("a PostgreSQL URL requires a host");
  const { username, password, searchParams } = first;
  const given = {
    PGHOST: hosts.map(({ hostname }) => hostname.replace(/^\[|\]$/g, "")).join(","),
    PGPORT: hosts.map(({ port }) => port).join(","),
    PGTARGETSESSIONATTRS: hosts.length > 1 ? "read-write" : "",
    PGUSER: decodeURIComponent(username),
    PGPASSWORD: decodeURIComponent(password),
    PGDATABASE: databaseOf(url),
    ...Object.fromEntries(
      Object.entries(PARAMETERS).map(([parameter, variable]) => [variable, searchParams.get(parameter) ?? ""]),
    ),
  };
  return { PATH, ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== "")) };
}

function databaseOf(url: string): string {
  return decodeURIComponent(new URL(splitHosts(url)[0] ?? url).pathname.slice(1));
}
