import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { isStoreAway } from "@fairlead/hosting/errors/store-errors";
import { sql } from "kysely";
import { afterEach, beforeEach, expect, test } from "vitest";
import { pinging } from "../open.ts";
import type { OpenedHandle } from "../opened-handle.ts";
import { openPostgres } from "./open-postgres.ts";

const LIMITS = { connectMs: 300, maxWaiting: 5, statementMs: 60_000 };
const PING_MS = 100;
const CONNECTIONS = 10;
/** AuthenticationOk and ReadyForQuery. */
const WELCOME = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0, 0x5a, 0, 0, 0, 5, 0x49]);

/** A PostgreSQL that hangs: it takes connections, and responds to no query. */
let server: Server;
let sockets: Socket[];
let welcomes: boolean;
let store: OpenedHandle;

beforeEach(async () => {
  sockets = [];
  welcomes = true;
  server = createServer((socket) => {
    sockets.push(socket);
    socket.on("error", () => undefined);
    socket.once("data", () => welcomes && socket.write(WELCOME));
    socket.resume();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  store = openPostgres(`postgres://u@127.0.0.1:${port}/d?sslmode=disable`, () => () => undefined, { limits: LIMITS });
});
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  await store.close();
  server.close();
});

/** @returns whether it failed since the store is away. */
const ask = async (): Promise<boolean> =>
  sql`select 1`.execute(store.db).then(
    () => false,
    (error: unknown) => isStoreAway(error),
  );

test("a database that accepts connections but never responds fails concurrent pings in time, with a single query", async () => {
  const ping = pinging(() => sql`select 1`.execute(store.db), PING_MS);
  const outcomes = await Promise.allSettled(Array.from({ length: 50 }, () => ping()));
  expect(outcomes.map(({ status }) => status)).toEqual(Array(50).fill("rejected"));
  expect(sockets).toHaveLength(1);
  expect(await ping().catch(isStoreAway)).toBe(true);
});

test("queries beyond the waiting limit fail immediately, and those that wait fail in time", async () => {
  const running = Array.from({ length: CONNECTIONS }, ask);
  const waiting = Array.from({ length: LIMITS.maxWaiting }, ask);
  const refused: boolean[] = [];
  for (let n = 0; n < 100; n++) refused.push(await ask());
  expect(refused).toEqual(Array(100).fill(true));
  expect(await Promise.all(waiting)).toEqual(Array(LIMITS.maxWaiting).fill(true));
  for (const socket of sockets) socket.destroy();
  expect(await Promise.all(running)).toEqual(Array(CONNECTIONS).fill(true));
});

test("a database that sends no greeting counts as unavailable", async () => {
  welcomes = false;
  expect(await ask()).toBe(true);
});

test("a statement without a response fails in time, and its connection is closed and not reused", async () => {
  const { port } = server.address() as AddressInfo;
  const url = `postgres://u@127.0.0.1:${port}/d?sslmode=disable`;
  const hasty = openPostgres(url, () => () => undefined, { limits: { ...LIMITS, statementMs: 100 } });
  const read = sql`select 1`.execute(hasty.db);
  const write = sql`insert into thing values (1)`.execute(hasty.db);
  await expect(read).rejects.toSatisfy(isStoreAway);
  await expect(write).rejects.toSatisfy(isStoreAway);
  await expect.poll(() => sockets.map(({ destroyed }) => destroyed)).toEqual([true, true]);
  await expect(sql`select 1`.execute(hasty.db)).rejects.toSatisfy(isStoreAway);
  expect(sockets).toHaveLength(3);
  await hasty.close();
});

test("an unresponsive host among several is skipped, and the next query starts with another one", async () => {
  const { port } = server.address() as AddressInfo;
  welcomes = false;
  const silent = `127.0.0.1:${port}`;
  const store = openPostgres(`postgres://u@${silent},127.0.0.1:1/d?sslmode=disable`, () => () => undefined, {
    limits: LIMITS,
  });
  await expect(sql`select 1`.execute(store.db)).rejects.toMatchObject({ code: "ECONNREFUSED" });
  expect(sockets).toHaveLength(1);
  await store.close();
});
