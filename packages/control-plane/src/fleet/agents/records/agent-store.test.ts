import { NO_LIMITS } from "@fairlead/protocol/key-limits";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { OpenedDatabase } from "../../../installation/db/open.ts";
import { insertProject, insertUser, STORES } from "../../../testing.fixture.ts";
import type { AgentRecord } from "../definition/agent.ts";
import { placedAgent } from "../life/placed-agent.fixture.ts";
import type { AgentEventRecord } from "./agent-event-store.ts";
import { type AgentStores, agentStores } from "./agent-stores.ts";

const HOSTILE = "„quotes\" and 'more'; drop table agent -- <b>🤖";

describe.each(STORES)("the agent stores on $name", ({ open }) => {
  let store: OpenedDatabase;
  let stores: AgentStores;
  const agent = placedAgent({ id: "agt_1", projectId: "prj_1", nodeId: "nod_1" });

  beforeEach(async () => {
    store = await open();
    stores = agentStores(store.db);
    await insertUser(store, "usr_1");
    await insertProject(store, "prj_1", "usr_1");
    await insertProject(store, "prj_2", "usr_1");
  });
  afterEach(() => store.close());

  const full: AgentRecord = {
    ...agent,
    name: "näme",
    guest: "ghcr.io/example/guest@sha256:00",
    connectorSlugs: ["slack", "http"],
    config: { env: { TASK: `${HOSTILE}\u0000` }, secrets: { TOKEN: { as: "env" } }, health: { probe: "running" } },
    limits: { ...NO_LIMITS, modelAllowList: ["a/*"], budget: { total: 9, daily: null, monthly: null } },
    run: 3_000_000_000,
    placement: { nodeId: "nod_9", since: 5_000_000_000, releasedAt: 6_000_000_000 },
    observed: {
      image: "image",
      imageDigest: "sha256:1",
      startedAt: "2026-01-01T00:00:00.000Z",
      restartCount: 2,
      lastExit: { code: 1, reason: HOSTILE, at: "2026-01-01T00:00:00.000Z" },
      message: HOSTILE,
    },
    lifecycleSince: 9e12,
  };

  test("an agent is found as it was inserted and as it was changed", async () => {
    await stores.agents.insert(full);
    expect(await stores.agents.find("agt_1")).toEqual(full);
    const fields = { ...agent, name: "Other", nodeId: "nod_2", updatedAt: 7 };
    await stores.agents.setFields("prj_1", "agt_1", fields);
    await stores.agents.setCourse("prj_1", "agt_1", { ...agent, wanted: false, placement: null });
    const { name, guest, nodeId, connectorSlugs, config, updatedAt } = fields;
    const expected = { ...agent, name, guest, nodeId, connectorSlugs, config, updatedAt, limits: full.limits };
    expect(await stores.agents.find("agt_1")).toEqual({ ...expected, wanted: false, placement: null });
    expect(await stores.agents.find("agt_2")).toBeNull();
  });

  test("nothing of another project's agent is changed or deleted", async () => {
    await stores.agents.insert(full);
    await stores.agents.setFields("prj_2", "agt_1", { ...agent, name: "stolen" });
    await stores.agents.setCourse("prj_2", "agt_1", { ...agent, wanted: false });
    await stores.agents.setLimits("prj_2", "agt_1", NO_LIMITS);
    await stores.agents.delete("prj_2", "agt_1");
    expect(await stores.agents.find("agt_1")).toEqual(full);
  });

  test("agents are listed by project in pages, and found by their nodes", async () => {
    const at = (id: string, more: Partial<AgentRecord> = {}): Promise<void> =>
      stores.agents.insert({ ...agent, id, ...more });
    await at("agt_1", { placement: { nodeId: "nod_2", since: 1, releasedAt: 2 } });
    await at("agt_2", { placement: null, wanted: false, nodeId: "nod_3" });
    await at("agt_3", { projectId: "prj_2" });
    await at("agt_4", { placement: null, nodeId: "nod_4" });
    const ids = (agents: readonly { readonly id: string }[]): string[] => agents.map(({ id }) => id);
    expect(ids(await stores.agents.list("prj_1", { limit: 2, after: null }))).toEqual(["agt_1", "agt_2"]);
    expect(ids(await stores.agents.list("prj_1", { limit: 2, after: "agt_2" }))).toEqual(["agt_4"]);
    expect(ids(await stores.agents.placedOn("nod_1"))).toEqual(["agt_3"]);
    expect(ids(await stores.agents.around("nod_1"))).toEqual(["agt_1", "agt_3"]);
    expect(await stores.agents.countByState()).toMatchObject({ running: 4, stopped: 0 });
    expect((await stores.agents.hosts()).toSorted()).toEqual(["nod_1", "nod_2", "nod_4"]);
  });

  test("an agent is deleted with its project, and its history with it", async () => {
    await stores.agents.insert(agent);
    await stores.events.append([event("evt_1")]);
    await store.db.deleteFrom("project").where("id", "=", "prj_1").execute();
    expect(await stores.agents.find("agt_1")).toBeNull();
    expect(await stores.events.list("agt_1", { limit: 9, after: null })).toEqual([]);
  });

  const event = (id: string, more: Partial<AgentEventRecord> = {}): AgentEventRecord => ({
    id,
    agentId: "agt_1",
    at: 1,
    kind: "created",
    lifecycleState: "created",
    message: "",
    ...more,
  });

  test("the history is listed newest first, by kind, time and page, and the oldest are deleted first", async () => {
    await stores.agents.insert(agent);
    const noted = event("evt_3", {
      at: 3,
      kind: "update_requested",
      lifecycleState: null,
      message: HOSTILE,
    });
    await stores.events.append([event("evt_1"), event("evt_2", { at: 2 }), noted]);
    await stores.events.append([]);
    const list = (query: object) => stores.events.list("agt_1", { limit: 9, after: null, ...query });
    expect(await list({})).toEqual([noted, event("evt_2", { at: 2 }), event("evt_1")]);
    expect(await list({ kinds: ["update_requested"] })).toEqual([noted]);
    expect(await list({ since: 3 })).toEqual([noted]);
    expect(await list({ limit: 1, after: "evt_3" })).toEqual([event("evt_2", { at: 2 })]);
    expect(await stores.events.deleteBefore(3, 1)).toBe(1);
    expect(await stores.events.deleteBefore(3, 9)).toBe(1);
    expect(await list({})).toEqual([noted]);
  });
});
