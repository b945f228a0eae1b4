import { Agent as Connections, request } from "node:http";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { FleetStage } from "../support/fleet-stage.ts";
import { MeteredUpstream } from "../support/metered-upstream.ts";
import { type DrillCall, type DrillResult, LIMIT_TOKENS, makeCall, refusalOf } from "../support/money-calls.ts";
import { SimulatedDaemon } from "../support/simulated-daemon.ts";
import { waitFor } from "../support/wait-for.ts";

const SOON_MS = 60_000;
const PRICES = { input: 3_000_001, cachedInput: 1_500_000, output: 7_000_003, perRequest: 11 };
const MODEL = { name: "m", maxOutputTokens: 2000, prices: PRICES };
/** For some forty calls of the drill. */
const BUDGET = 40_000;
const CALL: DrillCall = {
  dialect: "chat",
  model: "metered/m",
  stream: false,
  deed: "answer",
  tokens: LIMIT_TOKENS / 2,
  leaves: false,
  poor: false,
};

const createdAgent = z.object({ agent: z.object({ id: z.string() }) });
const agentSchema = z.object({ lifecycleState: z.string(), runtime: z.object({ nodeId: z.string() }) });
const limitsSchema = z.object({ spent: z.object({ total: z.number() }), budget: z.object({ total: z.number() }) });
const ledgerSchema = z.object({
  ledgerEntries: z.array(
    z.object({
      kind: z.string(),
      amountNanoDollars: z.number(),
      keyId: z.string().nullable(),
      agentId: z.string().nullable(),
    }),
  ),
  nextPageToken: z.string(),
});
const usageSchema = z.object({
  groups: z.array(z.object({ agentId: z.string().nullable(), calls: z.number(), costNanoDollars: z.number() })),
});

/** Agents' access to models, from their daemons' links to the inference host, with daemons that have no machine. */
describe("an agent's access to models", () => {
  const upstream = new MeteredUpstream();
  const connections = new Connections({ keepAlive: true, maxSockets: 1 });
  let stage: FleetStage;
  let daemons: readonly SimulatedDaemon[];
  let agentId: string;

  beforeEach(async () => {
    await upstream.start();
    const platform = [{ name: "metered", baseUrl: upstream.baseUrl, protocols: ["chat"], models: [MODEL] }];
    const settings = { billing: { mode: "prepaid" }, providers: { platform } };
    stage = await FleetStage.start({ nodes: 2, settings });
    daemons = stage.nodes.map((node) => new SimulatedDaemon(node, { tunnel: false }));
    await waitFor("the links", SOON_MS, async () => daemons.every(({ isLive }) => isLive));
    const body = { projectId: projectId(), name: "Night shift", guest: "guest:1", runtimeProvider: provider(0) };
    ({ id: agentId } = createdAgent.parse(await stage.call("POST", "/v1/agents", body)).agent);
  });
  afterEach(async () => {
    connections.destroy();
    await Promise.all(daemons.map((daemon) => daemon.close()));
    await stage.remove();
    await upstream.stop();
  });

  const projectId = (): string => stage.nodes[0]?.identity.enrolled?.projectId ?? "";
  const provider = (index: number): string => `node:${stage.nodes[index]?.identity.nodeId}`;
  const daemon = (index: number): SimulatedDaemon => {
    const found = daemons[index];
    if (found === undefined) throw new Error(`there is no daemon ${index}`);
    return found;
  };
  const agent = (method: string, path = "", body?: object): Promise<unknown> =>
    stage.call(method, `/v1/agents/${agentId}${path}`, body);
  const untilRunning = (index: number): Promise<unknown> =>
    waitFor("the agent to run", SOON_MS, async () => {
      const { lifecycleState, runtime } = agentSchema.parse(await agent("GET"));
      return lifecycleState === "running" && `node:${runtime.nodeId}` === provider(index);
    });
  async function tokenOn(index: number): Promise<string> {
    const token = await daemon(index).workerToken(agentId);
    if (token === null) throw new Error("its daemon gets no token for it");
    return token;
  }
  /** All by one connection, as agents call. */
  const statusOf = (token: string): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${token}` };
      const call = request(`${stage.modelsUrl}/v1/models`, { agent: connections, headers }, (answer) => {
        answer.resume().once("end", () => resolve(answer.statusCode));
      });
      call.once("error", reject).end();
    });

  test("ends with each run (stop, restart, move, delete) and never returns", async () => {
    expect(await daemon(0).workerToken(agentId)).toBeNull();
    await agent("POST", ":start");
    await untilRunning(0);
    const first = await tokenOn(0);
    expect(await daemon(1).workerToken(agentId)).toBeNull();
    // Twice, so that it is in every cache, on a connection that stays open.
    expect([await statusOf(first), await statusOf(first)]).toEqual([200, 200]);

    await agent("POST", ":stop");
    expect(await statusOf(first)).toBe(401);
    expect(await daemon(0).workerToken(agentId)).toBeNull();

    await agent("POST", ":start");
    await untilRunning(0);
    const second = await tokenOn(0);
    expect([await statusOf(first), await statusOf(second)]).toEqual([401, 200]);

    await stage.server.kill();
    await stage.startServer();
    await waitFor("the links", SOON_MS, async () => daemons.every(({ isLive }) => isLive));
    expect([await statusOf(first), await statusOf(second)]).toEqual([401, 200]);

    await agent("PATCH", "", { runtimeProvider: provider(1) });
    expect(await statusOf(second)).toBe(401);
    await untilRunning(1);
    const third = await tokenOn(1);
    expect([await statusOf(second), await statusOf(third)]).toEqual([401, 200]);
    expect(await daemon(0).workerToken(agentId)).toBeNull();

    await agent("PATCH", "", { runtimeProvider: provider(0) });
    await untilRunning(0);
    const fourth = await tokenOn(0);
    expect(await Promise.all([first, second, third, fourth].map(statusOf))).toEqual([401, 401, 401, 200]);

    await agent("DELETE");
    expect(await Promise.all([first, second, third, fourth].map(statusOf))).toEqual([401, 401, 401, 401]);
    expect(await daemon(0).workerToken(agentId)).toBeNull();
  });

  test("costs at most the agent's budget, to the nano-dollar, even if the server crashes", async () => {
    await stage.call("POST", `/v1/projects/${projectId()}/credits`, { amountNanoDollars: 100 * BUDGET, note: "" });
    await agent("PATCH", "/limits", { budget: { total: BUDGET } });
    await agent("POST", ":start");
    await untilRunning(0);
    const token = await tokenOn(0);
    const results: DrillResult[] = [];
    const run = async (call: DrillCall): Promise<DrillResult> => {
      const result = await makeCall(stage.modelsUrl, token, call);
      results.push(result);
      return result;
    };
    const slow = Array.from({ length: 40 }, (_, n) => run({ ...CALL, deed: "answer slowly", stream: n % 2 === 0 }));
    await waitFor("a few answers", SOON_MS, async () => results.filter(({ delivered }) => delivered).length >= 3);
    await stage.server.kill();
    await Promise.all(slow);
    await stage.startServer();
    await waitFor("its daemon", SOON_MS, async () => daemon(0).isLive);

    for (;;) {
      const batch = await Promise.all(Array.from({ length: 5 }, () => run(CALL)));
      if (batch.some((result) => refusalOf(result)?.code === "agent_budget_exceeded")) break;
    }
    const last = refusalOf(await run(CALL));
    const { spent, budget } = limitsSchema.parse(await agent("GET", "/limits"));
    let charged = 0;
    await waitFor("the ledger, which is written behind", SOON_MS, async () => {
      charged = await chargedTo(agentId);
      return charged >= spent.total;
    });
    expect(charged).toBe(spent.total);
    expect(charged).toBeLessThanOrEqual(budget.total);
    expect(charged).toBeGreaterThan(budget.total / 2);
    expect(last).toMatchObject({ code: "agent_budget_exceeded", money: { leftNanoDollars: budget.total - charged } });

    const usage = usageSchema.parse(await stage.call("GET", `/v1/projects/${projectId()}/usage?groupBy=agent`));
    const group = usage.groups.find((candidate) => candidate.agentId === agentId);
    expect(group?.costNanoDollars).toBeGreaterThan(0);
  });

  async function chargedTo(id: string): Promise<number> {
    let sum = 0;
    let pageToken = "";
    do {
      const path = `/v1/projects/${projectId()}/ledger?pageSize=200&pageToken=${pageToken}`;
      const page = ledgerSchema.parse(await stage.call("GET", path));
      const settled = page.ledgerEntries.filter(({ kind, agentId: of }) => kind === "settle" && of === id);
      sum -= settled.reduce((total, { amountNanoDollars }) => total + amountNanoDollars, 0);
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    return sum;
  }
});
