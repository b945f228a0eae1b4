import { execFile } from "node:child_process";
import { copyFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "vitest";
import { z } from "zod";
import { type OpenedDatabase, openDatabase } from "../../../packages/control-plane/src/installation/db/open.ts";
import { LedgerCheck } from "../../../packages/control-plane/src/money/billing/ledger-check.ts";
import { costOf, type Prices } from "../../../packages/inference/src/ports/prices.ts";
import { ChatCaller } from "../../support/chat-caller.ts";
import { FleetStage } from "../../support/fleet-stage.ts";
import { CACHED_TOKENS, INPUT_TOKENS, MeteredUpstream } from "../../support/metered-upstream.ts";
import { type DrillCall, type DrillResult, LIMIT_TOKENS, makeCall } from "../../support/money-calls.ts";
import { StartedServer } from "../../support/started-server.ts";
import { waitFor } from "../../support/wait-for.ts";

const FAIRLEAD = new URL("../../../packages/cli/bin/fairlead.js", import.meta.url).pathname;
const PRICES: Prices = { input: 3_000_001, cachedInput: 1_500_000, output: 7_000_003, perRequest: 11 };
const MODEL = "both/m";
const GIVEN = 5_000_000_000_000_000;
const SOON_MS = 30_000;
const SERVER_STOPPED = "The server stopped during this call.";

const run = promisify(execFile);
const withKey = z.object({ key: z.object({ id: z.string(), keyValue: z.string() }) });

/** What it costs to be told so many tokens. */
const priceOf = (tokens: number): number =>
  costOf({ inputTokens: INPUT_TOKENS, cachedInputTokens: CACHED_TOKENS, outputTokens: tokens }, PRICES);

/** A result of a call, and when it began and ended, by `performance.now()`. */
export interface TimedResult extends DrillResult {
  readonly began: number;
  readonly ended: number;
}

/** A prepaid platform on a PostgreSQL, with money, a key, a node, and a provider that counts to the token. */
export class MoneyStage {
  readonly upstream: MeteredUpstream;
  readonly fleet: FleetStage;
  readonly #settings: Readonly<Record<string, unknown>>;
  #key = { id: "", keyValue: "" };

  private constructor(upstream: MeteredUpstream, fleet: FleetStage, settings: Readonly<Record<string, unknown>>) {
    this.upstream = upstream;
    this.fleet = fleet;
    this.#settings = settings;
  }

  static async start(url: string): Promise<MoneyStage> {
    const upstream = new MeteredUpstream();
    await upstream.start();
    const protocols = ["chat", "responses"];
    const models = [{ name: "m", maxOutputTokens: 2000, contextTokens: 100_000, prices: PRICES }];
    const settings = {
      database: { url },
      billing: { mode: "prepaid" },
      providers: { platform: [{ name: "both", baseUrl: upstream.baseUrl, protocols, models }] },
      inference: { defaultModel: MODEL },
    };
    const stage = new MoneyStage(upstream, await FleetStage.start({ nodes: 1, settings }), settings);
    await stage.#open();
    return stage;
  }

  get chat(): ChatCaller {
    return this.chatAt(this.fleet.platformUrl);
  }

  /** @param url of another server. */
  chatAt(url: string): ChatCaller {
    return new ChatCaller({ url, token: this.fleet.token, projectId: this.projectId });
  }

  get projectId(): string {
    return this.fleet.nodes[0]?.identity.enrolled?.projectId ?? "";
  }

  /** @param modelsUrl of the server; the stage's own if left out. */
  async call(tokens: number, how: Partial<DrillCall> = {}, modelsUrl = this.fleet.modelsUrl): Promise<TimedResult> {
    const call: DrillCall = { ...ANY_CALL, tokens, ...how };
    const began = performance.now();
    const result = await makeCall(modelsUrl, this.#key.keyValue, call);
    return { ...result, began, ended: performance.now() };
  }

  /** A stream of about 60 tokens a second. */
  stream(tokens: number): Promise<TimedResult> {
    return this.call(tokens, { stream: true, deed: "answer slowly" });
  }

  /** Short calls, one after another without waiting for any. */
  load(perSecond: number): Load {
    return new Load(perSecond, (tokens) => this.call(tokens));
  }

  /** Another server on the same database, as a service manager starts it on another machine. */
  async launchOther(): Promise<StartedServer> {
    const keyFile = "master.key";
    return StartedServer.launch(this.#settings, [], (dataDir) => {
      mkdirSync(dataDir, { mode: 0o700 });
      copyFileSync(join(this.fleet.dir, "data", keyFile), join(dataDir, keyFile));
    });
  }

  /** As an operator does, on the machine of the stage's server. @returns what it prints. */
  async checkLedger(): Promise<string> {
    const args = ["admin", "check-ledger", "--config", join(this.fleet.dir, "config.yaml")];
    const { stdout, stderr } = await run(process.execPath, [FAIRLEAD, ...args]);
    return stdout + stderr;
  }

  /**
   * Recomputes all money from its rows, once nothing runs any more: the ledger is whole, each call was charged once, and what the key has
   * spent and what is recorded of each call add up to what was charged.
   * @param url of the PostgreSQL. @param results each paid for if its caller got a whole answer, and free if it was refused.
   */
  async accounts(url: string, results: readonly DrillResult[]): Promise<Accounts> {
    const store = openDatabase({ url });
    try {
      // Ledger and usage are written behind, in transactions of their own. A call whose server is gone has no record.
      const { settled, usage, lost, spent, balance } = await waitFor("ledger and usage to agree", SOON_MS, async () => {
        const written = await readMoney(store.longReads, this.#key.id);
        const { holds, charged, lostSum, used, settled } = written;
        const ids = new Set(settled.map(({ call_id }) => call_id));
        const unpaid = results.filter(({ delivered, requestId }) => delivered && !ids.has(requestId)).length;
        if (holds === 0 && unpaid === 0 && charged === used + lostSum) return written;
        throw new Error(
          `${holds} open holds, ${unpaid} unpaid, charged ${charged}, used ${used}, of lost calls ${lostSum}`,
        );
      });
      const charges = new Map(settled.map(({ call_id, amount }) => [call_id ?? "", -amount]));
      expect(charges.size).toBe(settled.length);
      expect(new Set(usage.map(({ request_id }) => request_id)).size).toBe(usage.length);
      const isKeys = ({ spender_id }: { spender_id: string | null }): boolean => spender_id === this.#key.id;
      expect(spent).toBe(0 - sum(settled.filter(isKeys)));
      expect(balance).toBe(GIVEN + sum(settled));
      expect(await new LedgerCheck(store.maintenance).run()).toMatchObject({ projects: 1, wrong: [] });
      expectPaid(results, charges);
      return { charges, lost };
    } finally {
      await store.close();
    }
  }

  async remove(): Promise<void> {
    await this.fleet.remove();
    await this.upstream.stop();
  }

  async #open(): Promise<void> {
    const project = `/v1/projects/${this.projectId}`;
    await this.fleet.call("POST", `${project}/credits`, { amountNanoDollars: GIVEN });
    this.#key = withKey.parse(await this.fleet.call("POST", `${project}/keys`, { name: "drill" })).key;
  }
}

export interface Accounts {
  /** By call. */
  readonly charges: ReadonlyMap<string, number>;
  /** Calls that were closed for a server that was gone. */
  readonly lost: ReadonlySet<string>;
}

function expectPaid(results: readonly DrillResult[], charges: Accounts["charges"]): void {
  for (const { status, requestId, delivered, call } of results) {
    const told = { status, requestId, delivered };
    const paid = charges.get(requestId ?? "") ?? 0;
    if (delivered) expect({ ...told, paid }).toEqual({ ...told, paid: priceOf(call.tokens) });
    else if (status !== null && status >= 400) expect({ ...told, paid }).toEqual({ ...told, paid: 0 });
    else expect(paid).toBeLessThanOrEqual(priceOf(call.tokens));
  }
}

const ANY_CALL: DrillCall = {
  dialect: "chat",
  model: MODEL,
  stream: false,
  deed: "answer",
  tokens: 1,
  leaves: false,
  poor: false,
};

const sum = (rows: readonly { readonly amount: number }[]): number => rows.reduce((all, { amount }) => all + amount, 0);

/** As of one moment. */
async function readMoney(db: OpenedDatabase["db"], keyId: string) {
  const snapshot = db.transaction().setIsolationLevel("repeatable read").setAccessMode("read only");
  return snapshot.execute(async (read) => {
    const ledger = await read.selectFrom("ledger_entry").selectAll().execute();
    const settled = ledger.filter(({ kind }) => kind === "settle");
    const usage = await read.selectFrom("usage_record").select(["request_id", "cost as amount"]).execute();
    const { length: holds } = await read.selectFrom("open_hold").select("call_id").execute();
    const { balance } = await read.selectFrom("project_balance").select("balance").executeTakeFirstOrThrow();
    const spending = read.selectFrom("spending").select("spent").where("spender_id", "=", keyId);
    const spent = (await spending.where("period", "=", "total").executeTakeFirst())?.spent ?? 0;
    const lost = new Set(ledger.filter(({ note }) => note === SERVER_STOPPED).map(({ call_id }) => call_id ?? ""));
    const lostSum = 0 - sum(settled.filter(({ call_id }) => lost.has(call_id ?? "")));
    return { settled, usage, holds, balance, spent, lost, charged: 0 - sum(settled), lostSum, used: sum(usage) };
  });
}

/** Calls at a steady pace, however long each takes. */
class Load {
  readonly #timer: NodeJS.Timeout;
  readonly #calls: Promise<TimedResult>[] = [];
  readonly #results: TimedResult[] = [];

  constructor(perSecond: number, call: (tokens: number) => Promise<TimedResult>) {
    this.#timer = setInterval(() => {
      const running = call(1 + (this.#calls.length % LIMIT_TOKENS));
      this.#calls.push(running);
      void running.then((result) => this.#results.push(result));
    }, 1000 / perSecond);
  }

  /** Of calls that have ended. */
  get results(): readonly TimedResult[] {
    return this.#results;
  }

  delivered(since: number): readonly TimedResult[] {
    return this.#results.filter(({ delivered, began }) => delivered && began >= since);
  }

  /** @returns what came of all of them. */
  async stop(): Promise<readonly TimedResult[]> {
    clearInterval(this.#timer);
    return Promise.all(this.#calls);
  }
}
