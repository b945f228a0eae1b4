import pg from "pg";
import { StartError } from "../start-error.ts";
import type { ServerLock } from "./server-lock.ts";

/** Any number, as long as nothing else in the database uses it. */
const SERVER_LOCK = 7_203_116;

/**
 * Makes this process the one server of a PostgreSQL store, for as long as one connection lives: data folders on two machines
 * could not see each other. SQLite needs none, since its file lies in the locked data folder.
 * @throws StartError when another server holds the store, or the database does not answer.
 */
export async function holdStore(url: string | undefined): Promise<ServerLock> {
  if (url === undefined) return { release: () => undefined };
  const client = new pg.Client({ connectionString: url, keepAlive: true });
  // A lost connection loses the lock; the store's own queries then fail too, and say so.
  client.on("error", () => undefined);
  const release = (): void => void client.end();
  if (await tryLock(client)) return { release };
  release();
  throw new StartError("Another server runs on this PostgreSQL database. Stop it, or set database.url to another one.");
}

async function tryLock(client: pg.Client): Promise<boolean> {
  try {
    await client.connect();
    const { rows } = await client.query<{ held: boolean }>("select pg_try_advisory_lock($1) as held", [SERVER_LOCK]);
    return rows[0]?.held === true;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new StartError(`The database at database.url cannot be used: ${why}.`);
  }
}
