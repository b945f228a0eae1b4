import { NO_LIMITS } from "@fairlead/protocol/key-limits";
import type { AgentLimits } from "@fairlead/protocol/resources";
import { countingIds, TestClock } from "@fairlead/protocol/testing/test-clock";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { AuditService } from "../../../access/audit/audit-service.ts";
import { ProjectAccess } from "../../../access/auth/access.ts";
import type { OpenedDatabase } from "../../../installation/db/open.ts";
import { asUser, fixedMemberships, insertProject, insertUser, STORES } from "../../../testing.fixture.ts";
import { agentNotFound } from "../definition/agent.ts";
import { AgentAccessLookup } from "../life/agent-access.ts";
import { placedAgent } from "../life/placed-agent.fixture.ts";
import { AgentChangeFeed } from "../records/agent-change-feed.ts";
import { agentStores } from "../records/agent-stores.ts";
import { AgentLimitsService } from "./agent-limits-service.ts";

const NOTHING_SPENT = { total: 0, daily: 0, monthly: 0 };
const FREE: AgentLimits = { ...NO_LIMITS, spent: NOTHING_SPENT };

describe.each(STORES)("an agent's limits on $name", ({ open }) => {
  let store: OpenedDatabase;
  let limits: AgentLimitsService;
  let standings: AgentAccessLookup;
  let changed: string[];
  let spent: Map<string, AgentLimits["spent"]>;
  const ann = asUser("usr_ann");
  const ben = asUser("usr_ben");

  beforeEach(async () => {
    store = await open();
    await insertUser(store, "usr_ann");
    await insertProject(store, "prj_1", "usr_ann");
    const stores = agentStores(store.db);
    await stores.agents.insert(placedAgent({ id: "agt_1", projectId: "prj_1", nodeId: "nod_1" }));
    await stores.agents.insert(placedAgent({ id: "agt_2", projectId: "prj_1", nodeId: "nod_1" }));
    const roles: Readonly<Record<string, "admin" | "viewer">> = { usr_ann: "admin", usr_ben: "viewer" };
    const access = new ProjectAccess(
      fixedMemberships((projectId, userId) => (projectId === "prj_1" && roles[userId]) || null),
    );
    const changes = new AgentChangeFeed();
    changed = [];
    changes.listen(({ agentId }) => changed.push(agentId));
    spent = new Map();
    standings = new AgentAccessLookup(stores.agents);
    limits = new AgentLimitsService({
      db: store.db,
      agents: {
        get: async (caller, id) => {
          const agent = await stores.agents.find(id);
          if (agent === null) throw agentNotFound();
          await access.require(caller, agent.projectId, "agent.read");
          return agent;
        },
      },
      changes,
      access,
      audit: new AuditService({ clock: new TestClock(), ids: countingIds() }),
      billing: { spent: async () => spent },
    });
  });
  afterEach(() => store.close());

  test("are empty until someone sets them, and then apply to the agent's calls", async () => {
    expect(await limits.get(ann, "agt_1")).toEqual(FREE);
    const change = { modelAllowList: ["attic/*"], parallelCalls: 2, budget: { daily: 5 } };
    const own = { ...NO_LIMITS, ...change, budget: { ...NO_LIMITS.budget, daily: 5 } };
    expect(await limits.update(ann, "agt_1", change)).toEqual({ ...own, spent: NOTHING_SPENT });
    expect(changed).toEqual(["agt_1"]);
    expect(await standings.find("agt_1")).toMatchObject({ limits: own, live: true, run: 1 });
    expect(await limits.get(ann, "agt_2")).toEqual(FREE);
  });

  test("stay as they are when a change omits them, and are removed by null", async () => {
    await limits.update(ann, "agt_1", { requestsPerMinute: 9, budget: { total: 7, daily: 5 } });
    await limits.update(ann, "agt_1", { requestsPerMinute: null, budget: { daily: null } });
    expect(await limits.get(ann, "agt_1")).toEqual({ ...FREE, budget: { ...NO_LIMITS.budget, total: 7 } });
  });

  test("are returned with what the agent has spent", async () => {
    spent.set("agt_1", { total: 70, daily: 5, monthly: 20 });
    expect(await limits.get(ben, "agt_1")).toEqual({ ...NO_LIMITS, spent: { total: 70, daily: 5, monthly: 20 } });
  });

  test("are readable by members, changed by owners and administrators, and not found for strangers", async () => {
    expect(await limits.get(ben, "agt_1")).toEqual(FREE);
    await expect(limits.update(ben, "agt_1", { parallelCalls: 1 })).rejects.toMatchObject({
      code: "permission_denied",
    });
    for (const call of [
      () => limits.get(asUser("usr_cid"), "agt_1"),
      () => limits.update(asUser("usr_cid"), "agt_1", { parallelCalls: 1 }),
      () => limits.update(ann, "agt_3", { parallelCalls: 1 }),
      () => limits.get(ann, "' or 1=1 --"),
    ]) {
      await expect(call()).rejects.toMatchObject({ code: "not_found" });
    }
    expect(await limits.get(ann, "agt_1")).toEqual(FREE);
  });

  test("are recorded by field name when they change, and not when nothing changes", async () => {
    await limits.update(ann, "agt_1", { parallelCalls: 7, budget: { monthly: 9 } });
    await limits.update(ann, "agt_1", { parallelCalls: 7 });
    const events = await store.db.selectFrom("audit_event").select(["action", "detail"]).execute();
    expect(events).toEqual([{ action: "agent.limits", detail: '{"fields":"parallelCalls,budget.monthly"}' }]);
  });

  test("keep both of two concurrent changes", async () => {
    await Promise.all([
      limits.update(ann, "agt_1", { parallelCalls: 7 }),
      limits.update(ann, "agt_1", { budget: { total: 70 } }),
    ]);
    expect(await limits.get(ann, "agt_1")).toMatchObject({ parallelCalls: 7, budget: { total: 70 } });
  });
});
