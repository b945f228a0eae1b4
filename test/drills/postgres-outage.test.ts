import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { describeWithPostgres, PostgresServer } from "../support/postgres-server.ts";
import { waitFor } from "../support/wait-for.ts";
import { EVERY_DRILL } from "./stage/every-drill.ts";
import { MoneyStage } from "./stage/money-stage.ts";

const SOON_MS = 30_000;
/** After which nobody is served whose call cannot be recorded: two seconds, and one for a busy machine. */
const AWAY_MS = 3000;
const BACK_MS = 10_000;
/** A query to a host that hangs is given up after 5.5 s, and so is a new connection to it. */
const FAILOVER_MS = 20_000;
const PER_SECOND = 20;
const HANG_MS = EVERY_DRILL ? 20_000 : 8000;

describeWithPostgres("while PostgreSQL", () => {
  let servers: PostgresServer[];
  let stage: MoneyStage;

  beforeEach(() => {
    servers = [];
  });
  afterEach(async () => {
    await stage?.remove();
    for (const server of servers) await server.remove();
  });

  const primary = async (): Promise<PostgresServer> => {
    const server = await PostgresServer.create();
    servers.push(server);
    return server;
  };
  /** A platform on a primary and its standby, under load. @param isFirst whether the URL names the primary before the standby. */
  const pair = async (isFirst: boolean) => {
    const first = await primary();
    const second = await first.createStandby();
    servers.push(second);
    const hosts = isFirst ? [first.host, second.host] : [second.host, first.host];
    stage = await MoneyStage.start(`postgres://postgres@${hosts.join(",")}/postgres?target_session_attrs=read-write`);
    const load = stage.load(PER_SECOND);
    await waitFor("calls that are served", SOON_MS, async () => load.delivered(0).length >= PER_SECOND);
    return { first, second, load };
  };

  test("hangs, prepaid calls fail after two seconds; afterwards served calls are recorded once, and calls succeed", async () => {
    const postgres = await primary();
    stage = await MoneyStage.start(postgres.url);
    const load = stage.load(PER_SECOND);
    const stream = stage.stream(600);
    await waitFor("calls that are served", SOON_MS, async () => load.delivered(0).length >= PER_SECOND);
    postgres.freeze();
    const hung = performance.now();
    await sleep(HANG_MS);
    const back = performance.now();
    postgres.thaw();
    const meanwhile = load.results.filter(({ ended }) => ended > hung + AWAY_MS && ended < back);
    expect(new Set(meanwhile.map(({ status }) => status))).toEqual(new Set([503]));
    await waitFor("calls that are served again", BACK_MS, async () => load.delivered(back).length >= PER_SECOND);
    const results = [...(await load.stop()), await stream];
    expect(results.at(-1)?.delivered).toBe(true);
    await stage.accounts(postgres.url, results);
    expect(await stage.checkLedger()).toMatch(/: OK/);
  });

  test.each(EVERY_DRILL ? ["crashes", "hangs"] : ["crashes"])(
    "%s and a standby takes over, the server switches to it, and all served calls are recorded once",
    async (fault) => {
      const { first, second, load } = await pair(true);
      const stream = stage.stream(400);
      await waitFor("the stream to run", SOON_MS, async () => stage.upstream.running > 0);
      if (fault === "hangs") first.freeze();
      else await first.stop("immediate");
      await second.promote();
      const promoted = performance.now();
      await waitFor(
        "calls that are served again",
        FAILOVER_MS,
        async () => load.delivered(promoted).length >= PER_SECOND,
      );
      const results = [...(await load.stop()), await stream];
      expect(results.at(-1)?.delivered).toBe(true);
      await stage.accounts(second.url, results);
      expect(await stage.checkLedger()).toMatch(/: OK/);
      expect(stage.fleet.server.running).toBe(true);
    },
  );

  test("becomes read-only, the server switches its connections to the host that accepts writes", async () => {
    const { first, second, load } = await pair(false);
    await first.configure("default_transaction_read_only", "on");
    await waitFor("a call that is refused", SOON_MS, async () => load.results.at(-1)?.status === 503);
    await second.promote();
    const promoted = performance.now();
    await waitFor("calls that are served again", BACK_MS, async () => load.delivered(promoted).length >= PER_SECOND);
    const results = await load.stop();
    await stage.accounts(second.url, results);
    expect(await stage.checkLedger()).toMatch(/: OK/);
    const connections =
      "select count(*) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()";
    await waitFor(
      "the last connection to the old host to go",
      SOON_MS,
      async () => (await first.query(connections)) === "0",
    );
  });
});
