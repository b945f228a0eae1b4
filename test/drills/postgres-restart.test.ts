import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readTurn, type TurnAnswer } from "../support/chat-caller.ts";
import { describeWithPostgres, PgBouncer, PostgresServer } from "../support/postgres-server.ts";
import { SimulatedDaemon } from "../support/simulated-daemon.ts";
import { waitFor } from "../support/wait-for.ts";
import { EVERY_DRILL } from "./stage/every-drill.ts";
import { MoneyStage } from "./stage/money-stage.ts";

const SOON_MS = 30_000;
/** Longer than a lease. */
const DOWN_MS = 10_500;
/** Tokens of streams that end while PostgreSQL is away, about when it comes back, and when the second server has given up. */
const LENGTHS = [300, 700, 1000];
const IN_OUTAGE = 300;
const FENCED_EXIT = 70;
/** Less than a server opens to it, so that a transaction gets another one each time. */
const POOLED = 3;
const LONG = 1000;

describeWithPostgres("a restart of PostgreSQL", () => {
  let postgres: PostgresServer;
  let pool: PgBouncer;
  let stage: MoneyStage;
  let daemon: SimulatedDaemon;

  beforeEach(async () => {
    postgres = await PostgresServer.create();
    pool = await PgBouncer.start(postgres, POOLED);
  });
  afterEach(async () => {
    await daemon?.close();
    await stage?.remove();
    await pool?.stop();
    await postgres?.remove();
  });

  const startStage = async (url: string): Promise<void> => {
    stage = await MoneyStage.start(url);
    const [node] = stage.fleet.nodes;
    if (node === undefined) throw new Error("the stage has a node");
    daemon = new SimulatedDaemon(node, { tunnel: true });
    await waitFor("the node", SOON_MS, async () => (await stage.fleet.nodesIn("active")) === 1);
  };

  const question = (tokens: number): string => JSON.stringify({ deed: "answer slowly", tokens });
  const words = (tokens: number): string => "word ".repeat(tokens);
  const turn = async (tokens: number): Promise<TurnAnswer> => readTurn(await stage.chat.begin(question(tokens)));
  /** Its question and its answer, as they are stored. */
  const stored = async ({ session }: TurnAnswer): Promise<object[]> =>
    (await stage.chat.messages(session)).map(({ status, content }) => ({ status, content }));

  const ways = [
    { mode: "immediate", way: "reached directly" },
    { mode: "fast", way: "behind PgBouncer in transaction mode" },
    { mode: "fast", way: "reached directly" },
    { mode: "immediate", way: "behind PgBouncer in transaction mode" },
  ] as const;

  test.each(EVERY_DRILL ? ways : ways.slice(0, 2))(
    "($mode, $way) longer than a lease stops the server only after a takeover: until then others are rejected, and calls finish and are charged once",
    async ({ mode, way }) => {
      await startStage(way === "reached directly" ? postgres.url : pool.url);
      const other = await stage.launchOther();
      try {
        await waitFor("the second server to wait", SOON_MS, async () =>
          other.log.includes("waiting for its lease to expire"),
        );
        const streams = LENGTHS.map((tokens) => stage.stream(tokens));
        const turns = [turn(IN_OUTAGE), turn(LONG)] as const;
        await waitFor(
          "all calls to run",
          SOON_MS,
          async () => stage.upstream.running === LENGTHS.length + turns.length,
        );
        await postgres.stop(mode);
        await sleep(DOWN_MS);
        await postgres.start();
        await expect(other.ready()).rejects.toThrow("Another server is running on this PostgreSQL database");

        const results = await Promise.all(streams);
        expect(results.map(({ delivered }) => delivered)).toEqual(LENGTHS.map(() => true));
        const [cut, whole] = await Promise.all(turns);
        expect(whole).toMatchObject({ done: true, text: words(LONG) });
        expect(await stored(whole)).toEqual([
          { status: "completed", content: question(LONG) },
          { status: "completed", content: words(LONG) },
        ]);
        // At its end it could not be stored, and its caller was told so; nothing that was said is lost.
        expect(cut).toMatchObject({ done: false, text: words(IN_OUTAGE) });
        await expect.poll(() => stored(cut)).toContainEqual({ status: "completed", content: words(IN_OUTAGE) });
        const next = await stage.call(5);
        expect(next.delivered).toBe(true);

        const accounts = await stage.accounts(postgres.url, [...results, next]);
        expect(accounts.charges.size).toBe(LENGTHS.length + turns.length + 1);
        expect(accounts.lost).toEqual(new Set());
        expect(await stage.checkLedger()).toMatch(/: OK/);
        expect({ active: await stage.fleet.nodesIn("active"), links: daemon.links }).toEqual({ active: 1, links: 1 });

        await postgres.query("delete from replica");
        await stage.fleet.server.ended;
        expect(stage.fleet.server.exitCode).toBe(FENCED_EXIT);
      } finally {
        await other.remove();
      }
    },
  );
});
