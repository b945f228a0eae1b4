import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { StartError } from "../start-error.ts";

/** PostgreSQL's own `pg_dump` and `pg_restore`: nothing else copies such a store whole and consistent. */

/** Where a system's programs are; nothing else of our environment is theirs. */
const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/** What libpq takes from a URL's parameters, and the variable of each. */
const PARAMETERS: Readonly<Record<string, string>> = {
  sslmode: "PGSSLMODE",
  sslrootcert: "PGSSLROOTCERT",
  sslcert: "PGSSLCERT",
  sslkey: "PGSSLKEY",
  options: "PGOPTIONS",
};

/** @param schema the store's own: others may have theirs in the same database. @throws StartError */
export async function dumpPostgres(url: string, { schema, file }: PostgresDump): Promise<void> {
  await run("pg_dump", url, [
    "--format=custom",
    "--no-owner",
    "--no-privileges",
    `--schema=${schema}`,
    `--file=${file}`,
  ]);
}

/** Into a schema that is there and empty, all or nothing. @throws StartError */
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
      `The store is a PostgreSQL, and ${program} is not installed here. Install PostgreSQL's client programs ` +
        "(Debian: apt-get install postgresql-client), of the server's version or a newer one.",
    );
  }
}

/** By the environment: the arguments of a program can be read by everybody on the machine. */
function variablesOf(url: string): Record<string, string> {
  const { hostname, port, username, password, searchParams } = new URL(url);
  const given = {
    PGHOST: hostname,
    PGPORT: port,
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
  return decodeURIComponent(new URL(url).pathname.slice(1));
}
