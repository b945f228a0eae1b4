import { globSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { AgentCaller } from "../support/agent-calls.ts";
import { describeWithDocker, docker, ensureDemoAgentImage } from "../support/docker.ts";
import { HttpHook } from "../support/http-hook.ts";
import { Installation } from "../support/installation.ts";
import type { Machine } from "../support/machine.ts";
import { waitFor } from "../support/wait-for.ts";

const SOON_MS = 60_000;
/** A second is promised (decisions/0013); the rest is for a busy machine. */
const DEATH_MS = 2_000;
const TOKEN_FILE = "/run/secrets/fairlead-token";
const HOOK_TOKEN = "hook-t0ken-41f7";
const TASK = "What is the capital of Japan?";

const usageSchema = z.object({
  groups: z.array(z.looseObject({ agentId: z.string().nullable(), calls: z.number(), outputTokens: z.number() })),
});

/** The whole way of an agent, on real Docker: two machines, one with the models and one with the agent. */
describeWithDocker("the demo agent, from creation to deletion", () => {
  let installation: Installation;
  let models: Machine;
  let host: Machine;
  let hook: HttpHook;
  let agent: AgentCaller;
  let runtimeDir: string;
  let token: string;

  beforeAll(async () => {
    await ensureDemoAgentImage();
    runtimeDir = mkdtempSync("/dev/shm/fairlead-agents-");
    hook = await HttpHook.open();
    installation = await Installation.start();
    models = await installation.addMachine("Models");
    host = await installation.addMachine("Host", { engineConfig: null, daemonArgs: ["--runtime-dir", runtimeDir] });
    models.startDaemon();
    host.startDaemon();
    await Promise.all([models.untilActive(), host.untilActive()]);
    await models.untilItAnswers();
  });
  afterAll(async () => {
    await installation?.remove();
    await hook?.close();
    rmSync(runtimeDir, { recursive: true, force: true });
  });

  async function give(task: object): Promise<{ status: number; body: unknown }> {
    const { gatewayUrl, authToken } = await agent.connect();
    const headers = { authorization: `Bearer ${authToken}`, "content-type": "application/json" };
    const response = await fetch(`${gatewayUrl}/tasks`, { method: "POST", headers, body: JSON.stringify(task) });
    return { status: response.status, body: await response.json() };
  }

  /** The token that its container holds now. */
  async function heldToken(): Promise<string> {
    const [container = ""] = await agent.containers(host);
    const print = `process.stdout.write(require("node:fs").readFileSync("${TOKEN_FILE}", "utf8"))`;
    return docker("exec", container, "/bin/node", "-e", print);
  }

  async function statusFor(bearer: string): Promise<number> {
    const headers = { authorization: `Bearer ${bearer}` };
    return (await fetch(`${installation.modelsUrl}/v1/models`, { headers })).status;
  }

  const untilDead = (bearer: string): Promise<unknown> =>
    waitFor("the token to be dead", DEATH_MS, async () => (await statusFor(bearer)) === 401);

  /** Tables of the store in which the text stands anywhere, but for what is kept of what happened. */
  function tablesWith(text: string): string[] {
    const store = new DatabaseSync(join(installation.dir, "data/fairlead.db"), { readOnly: true });
    const names = store
      .prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")
      .all()
      .map(({ name }) => String(name));
    const found = names.filter((name) => {
      const rows = store.prepare(`SELECT * FROM "${name}"`).all();
      return rows.some((row) => Object.values(row).some((value) => String(value).includes(text)));
    });
    store.close();
    return found.filter((name) => !/^(audit|usage|idempot)/.test(name));
  }

  test("is created and does not run yet", async () => {
    agent = await AgentCaller.create(installation, host, {
      name: "Clerk",
      guest: "fairlead-demo-agent",
      connectorSlugs: ["http"],
      config: { env: { FAIRLEAD_MODEL: models.model }, health: { intervalSeconds: 1 } },
    });
    expect(await agent.get()).toMatchObject({ name: "Clerk", lifecycleState: "created" });
    expect(await agent.containers(host)).toEqual([]);
  });

  test("does not start while its connector lacks secrets, and the error names each missing one", async () => {
    const refused = await agent.call("POST", ":start", {});
    expect(refused.status).toBe(409);
    expect(JSON.parse(refused.text)).toMatchObject({ error: { code: "missing_secrets" } });
    for (const name of ["http", "HTTP_CONNECTOR_URL", "HTTP_CONNECTOR_TOKEN"]) expect(refused.text).toContain(name);
    await agent.want("PUT", "/secrets/HTTP_CONNECTOR_URL", { value: hook.url });
    const still = await agent.call("POST", ":start", {});
    expect(still).toMatchObject({ status: 409, text: expect.stringContaining("HTTP_CONNECTOR_TOKEN") });
    expect(still.text).not.toContain("HTTP_CONNECTOR_URL");
  });

  test("starts on its node once the secrets are set", async () => {
    await agent.want("PUT", "/secrets/HTTP_CONNECTOR_TOKEN", { value: HOOK_TOKEN });
    await agent.want("POST", ":start", {});
    const { runtime } = await agent.until("running");
    expect(runtime).toMatchObject({ nodeId: host.nodeId, image: "fairlead/demo-agent:1", restartCount: 0 });
    expect(await agent.containers(host)).toHaveLength(1);
  });

  test("answers a task from the relay with a model on another node and sends the response to the connector", async () => {
    const answered = await waitFor("an answer", SOON_MS, async () => {
      const given = await give({ task: TASK });
      return given.status !== 503 && given;
    });
    const { answer } = z.object({ answer: z.string() }).parse(answered.body);
    // The model has several ways to say it.
    expect(answer).toContain("Tokyo");
    expect(answered).toEqual({ status: 200, body: { answer, model: models.model, delivered: true } });
    expect(hook.deliveries).toEqual([
      { authorization: `Bearer ${HOOK_TOKEN}`, body: { agentId: agent.id, task: TASK, answer } },
    ]);
  });

  test("has its calls in the project's usage under its name", async () => {
    const path = `/v1/projects/${installation.projectId}/usage?groupBy=agent`;
    const group = await waitFor("the usage", SOON_MS, async () => {
      const usage = await installation.api.find(path, usageSchema);
      return usage?.groups.find(({ agentId }) => agentId === agent.id);
    });
    expect(group.calls).toBe(1);
    expect(group.outputTokens).toBeGreaterThan(0);
  });

  test("has a log that is read like a node's", async () => {
    expect((await agent.call("GET", "/logs?tail=10")).text).toContain("The demo agent is listening on port");
  });

  test("loses its token and its container when it is stopped", async () => {
    token = await heldToken();
    expect(await statusFor(token)).toBe(200);
    await agent.want("POST", ":stop", {});
    await untilDead(token);
    await agent.until("stopped");
    expect(await agent.containers(host)).toEqual([]);
    expect((await agent.call("GET", "/connect")).status).toBe(503);
  });

  test("gets a new token when it is started again, and the old one stays invalid", async () => {
    await agent.want("POST", ":start", {});
    await agent.until("running");
    const next = await waitFor("its token", SOON_MS, heldToken);
    expect(await statusFor(next)).toBe(200);
    expect(await statusFor(token)).toBe(401);
    token = next;
  });

  test("leaves no container, folder, row or valid token when it is deleted while running", async () => {
    await agent.want("DELETE");
    await untilDead(token);
    await waitFor("the end of it", SOON_MS, async () => (await agent.call("GET")).status === 404);
    expect(await agent.containers(host)).toEqual([]);
    await waitFor("its folders to go", SOON_MS, async () => {
      const folders = [runtimeDir, host.stateDir].flatMap((cwd) => globSync("**/*", { cwd }));
      return !folders.some((name) => name.toLowerCase().includes(agent.id.slice(-26)));
    });
    expect(tablesWith(agent.id)).toEqual([]);
    expect((await host.node()).status).toBe("active");
  });
});
