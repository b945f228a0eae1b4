import { afterEach, beforeEach, expect, test } from "vitest";
import { readTurn } from "../support/chat-caller.ts";
import { describeWithPostgres, PostgresServer } from "../support/postgres-server.ts";
import type { StartedServer } from "../support/started-server.ts";
import { waitFor } from "../support/wait-for.ts";
import { MoneyStage } from "./stage/money-stage.ts";

const SOON_MS = 30_000;
const FENCED_EXIT = 70;
const WAITS = "waiting for its lease to expire";
/** Everything that a server writes for calls, turns and nodes. */
const TABLES =
  "ledger_entry open_hold billing_batch project_balance spending usage_record usage_hour chat_session chat_turn chat_item node";

describeWithPostgres("a server on PostgreSQL", () => {
  let postgres: PostgresServer;
  let stage: MoneyStage;
  let others: StartedServer[];

  beforeEach(async () => {
    others = [];
    postgres = await PostgresServer.create();
  });
  afterEach(async () => {
    for (const other of others) await other.remove();
    await stage?.remove();
    await postgres?.remove();
  });

  const launchOther = async (): Promise<StartedServer> => {
    const other = await stage.launchOther();
    others.push(other);
    return other;
  };
  /** Of all rows of those tables. */
  const digest = async (): Promise<string> => {
    const rows = TABLES.split(" ").map((table) => `select '${table}' || t::text as row from ${table} t`);
    return postgres.query(
      `select count(*), md5(string_agg(row, '' order by row)) from (${rows.join(" union all ")}) all_rows`,
    );
  };

  /** So that their ends cost something. */
  const untilPartlyDelivered = async (calls: number): Promise<void> => {
    const delivered = "select count(*) from open_hold where delivered > 0";
    await waitFor(
      "a part of each to be paid for",
      SOON_MS,
      async () => Number(await postgres.query(delivered)) === calls,
    );
  };

  test("that is paused for longer than its lease is replaced by another, which closes its calls and turns, and then writes nothing", async () => {
    stage = await MoneyStage.start(postgres.url);
    const { server } = stage.fleet;
    // They end at the upstream while the server is stopped, and would be settled when it wakes up.
    const streams = [stage.stream(600), stage.stream(700)];
    const question = JSON.stringify({ deed: "answer slowly", tokens: 600 });
    const begun = await stage.chat.begin(question);
    const session = begun.headers.get("service-session-id") ?? "";
    const turn = readTurn(begun);
    await untilPartlyDelivered(3);
    process.kill(server.pid, "SIGSTOP");
    try {
      const other = await launchOther();
      await other.ready();
      expect(other.log).toContain(WAITS);
      expect(stage.upstream.running).toBe(0);
      const served = await stage.call(7, {}, other.modelsUrl);
      expect(served.delivered).toBe(true);
      const { lost } = await stage.accounts(postgres.url, [served]);
      expect(lost.size).toBe(3);
      const before = await digest();
      // Its lease's: what it would write must be refused by itself, before it hears that its lease is gone.
      await postgres.freezeOldestSession();

      process.kill(server.pid, "SIGCONT");
      await server.ended;
      expect(server.exitCode).toBe(FENCED_EXIT);
      await Promise.all([...streams, turn]);
      expect(await digest()).toBe(before);

      const { charges } = await stage.accounts(postgres.url, [served]);
      expect(charges.size).toBe(4);
      const taken = stage.chatAt(other.url);
      expect((await taken.messages(session)).map(({ role, status }) => ({ role, status }))).toEqual([
        { role: "user", status: "completed" },
        { role: "assistant", status: "incomplete" },
      ]);
      expect(await other.asOperator((admin) => admin.checkLedger())).toMatchObject({ wrong: [] });
    } finally {
      if (server.running) process.kill(server.pid, "SIGCONT");
    }
  });

  test("that was killed takes over its own lease immediately, and its calls are closed and charged once", async () => {
    stage = await MoneyStage.start(postgres.url);
    const streams = [stage.stream(1200), stage.stream(1200)];
    await untilPartlyDelivered(streams.length);
    await stage.fleet.server.kill();
    await stage.fleet.startServer();
    expect(stage.fleet.server.log).not.toContain(WAITS);
    const broken = await Promise.all(streams);
    expect(broken.map(({ delivered }) => delivered)).toEqual(streams.map(() => false));
    const load = stage.load(20);
    await waitFor("calls that are served", SOON_MS, async () => load.delivered(0).length >= 20);
    const results = await load.stop();
    const { lost, charges } = await stage.accounts(postgres.url, [...broken, ...results]);
    expect(lost).toEqual(new Set(broken.map(({ requestId }) => requestId)));
    expect([...lost].every((callId) => charges.has(callId))).toBe(true);
    expect(await stage.checkLedger()).toMatch(/: OK/);
  });
});
