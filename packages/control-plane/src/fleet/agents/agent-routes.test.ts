import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { agentConfigSchema, agentEventSchema, agentSchema } from "@fairlead/protocol/agents";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { openLocalAdmin } from "../../installation/admin/local-admin.ts";
import { type Config, loadConfig } from "../../installation/config/config.ts";
import { type RunningServer, startServer } from "../../server.ts";

const TOKEN = "fairlead-token";
const withAgent = z.object({ agent: z.strictObject(agentSchema.shape) });
const withError = z.object({ error: z.object({ code: z.string(), param: z.string().nullable() }) });
const listed = z.strictObject({ agents: z.array(agentSchema), nextPageToken: z.string() });
const events = z.object({ events: z.array(agentEventSchema) });

interface Answer {
  readonly status: number;
  readonly body: unknown;
  readonly replayed: boolean;
}

describe("the agent routes", () => {
  const dataDir = mkdtempSync(join(tmpdir(), "fairlead-agents-"));
  let config: Config;
  let server: RunningServer;
  let token: string;
  let projectId: string;
  let runtimeProvider: string;

  const call = async (route: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> => {
    const [method = "", path = ""] = route.split(" ");
    const json = body === undefined ? {} : { "content-type": "application/json" };
    const response = await fetch(`${server.platformUrl}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, ...json, ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const replayed = response.headers.get("idempotency-replayed") !== null;
    return { status: response.status, body: await response.json(), replayed };
  };
  const made = (more: object = {}): object => ({
    projectId,
    name: "Night",
    guest: "example/x:1",
    runtimeProvider,
    ...more,
  });
  const create = async (more: object = {}): Promise<z.infer<typeof agentSchema>> =>
    withAgent.parse((await call("POST /v1/agents", made(more))).body).agent;

  beforeAll(async () => {
    config = loadConfig({
      env: {
        FAIRLEAD_DATA_DIR: dataDir,
        FAIRLEAD_SERVER_PLATFORM_PORT: "0",
        FAIRLEAD_SERVER_INFERENCE_PORT: "0",
        FAIRLEAD_LOG_LEVEL: "silent",
      },
    });
    server = await startServer(config);
    const admin = await openLocalAdmin(config);
    await admin.createUser({ email: "ann@example.org", name: "Ann", platformAdmin: false });
    token = (await admin.createToken({ email: "ann@example.org" })).token;
    await admin.close();
    const project = await call("POST /v1/projects", { name: "Support" });
    projectId = z.object({ project: z.object({ id: z.string() }) }).parse(project.body).project.id;
    const node = await call("POST /v1/nodes", { projectId, planId: "byo", name: "Box" });
    runtimeProvider = `node:${z.object({ node: z.object({ id: z.string() }) }).parse(node.body).node.id}`;
  });
  afterAll(async () => {
    await server?.close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  test("a created agent has exactly the fields of the interface, and is not started", async () => {
    const { status, body } = await call("POST /v1/agents", made({ connectorSlugs: [], config: { port: 9000 } }));
    expect(status).toBe(200);
    const { agent } = withAgent.parse(body);
    expect(agent).toMatchObject({
      projectId,
      name: "Night",
      guest: "example/x:1",
      runtimeProvider,
      connectorSlugs: [],
    });
    expect(agent.lifecycleState).toBe("created");
    expect(agent.runtime).toMatchObject({ nodeId: "", message: "Not started." });
    expect((await call(`GET /v1/agents/${agent.id}`)).body).toEqual(agent);
    expect(agentConfigSchema.parse((await call(`GET /v1/agents/${agent.id}/config`)).body)).toEqual({ port: 9000 });
  });

  test("a repeated call with the same idempotency key creates one agent", async () => {
    const key = { "idempotency-key": "once" };
    const first = await call("POST /v1/agents", made({ name: "Once" }), key);
    const second = await call("POST /v1/agents", made({ name: "Once" }), key);
    expect(second).toEqual({ ...first, replayed: true });
    expect(await call("POST /v1/agents", made({ name: "Twice" }), key)).toMatchObject({ status: 409 });
  });

  test.each([
    ["an unknown field", { lifecycleState: "running" }, "lifecycleState"],
    ["a provider that is not a node", { runtimeProvider: "cloud:large" }, "runtimeProvider"],
    ["an unknown node", { runtimeProvider: `node:nod_${"0".repeat(26)}` }, "runtimeProvider"],
    ["an unknown connector", { connectorSlugs: ["fax"] }, "connectorSlugs[0]"],
    ["an empty guest", { guest: "" }, "guest"],
    ["a guest with white space", { guest: "a b" }, "guest"],
    ["a name of 81 characters", { name: "x".repeat(81) }, "name"],
    ["a config with an unknown field", { config: { prot: 1 } }, "config.prot"],
    ["a probe that agents do not support", { config: { health: { probe: "completion" } } }, "config.health.probe"],
    [
      "a secret whose name is not a valid variable",
      { config: { secrets: { "a.b": { as: "env" } } } },
      "config.secrets.a.b",
    ],
    [
      "a secret with the name of the agent's token",
      { config: { secrets: { [TOKEN]: { as: "file" } } } },
      `config.secrets.${TOKEN}`,
    ],
    ["a misspelled limit", { limits: { parallelcalls: 1 } }, "limits.parallelcalls"],
  ])("%s is rejected with the field's name", async (_, more, param) => {
    const { status, body } = await call("POST /v1/agents", made(more));
    expect(status).toBe(400);
    expect(withError.parse(body).error).toMatchObject({ code: "invalid_request", param });
  });

  test("agents are listed in pages, and only those of the project", async () => {
    await create({ name: "A" });
    await create({ name: "B" });
    const first = listed.parse((await call(`GET /v1/agents?projectId=${projectId}&pageSize=1`)).body);
    expect(first.agents).toHaveLength(1);
    const token2 = encodeURIComponent(first.nextPageToken);
    const rest = listed.parse((await call(`GET /v1/agents?projectId=${projectId}&pageToken=${token2}`)).body);
    expect(rest.agents.map(({ id }) => id)).not.toContain(first.agents[0]?.id);
    expect((await call("GET /v1/agents")).status).toBe(400);
    expect((await call("GET /v1/agents?projectId=prj_other")).status).toBe(404);
  });

  test("an agent can be changed, and its history says who changed it", async () => {
    const { id } = await create();
    const changed = await call(`PATCH /v1/agents/${id}`, { name: "Day", config: { env: { A: "b" } } });
    expect(agentSchema.parse(changed.body)).toMatchObject({ name: "Day", runtimeProvider });
    const told = events.parse((await call(`GET /v1/agents/${id}/events?kind=update_requested`)).body).events;
    expect(told).toMatchObject([{ lifecycleState: null, message: "ann@example.org changed name, config." }]);
    expect((await call(`PATCH /v1/agents/${id}`, { projectId: "prj_2" })).status).toBe(400);
  });

  test("a start on a node without a daemon is refused, a stop is not, and a deleted agent is not found", async () => {
    const { id } = await create();
    const start = await call(`POST /v1/agents/${id}:start`);
    expect(start.status).toBe(409);
    expect(withError.parse(start.body).error.code).toBe("node_not_enrolled");
    expect(agentSchema.parse((await call(`POST /v1/agents/${id}:stop`, {})).body).lifecycleState).toBe("created");
    expect(await call(`DELETE /v1/agents/${id}`)).toMatchObject({ status: 200, body: {} });
    for (const route of [`GET /v1/agents/${id}`, `DELETE /v1/agents/${id}`, `POST /v1/agents/${id}:start`])
      expect((await call(route)).status).toBe(404);
  });
});
