import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { AgentCaller } from "../support/agent-calls.ts";
import { describeWithDocker, docker } from "../support/docker.ts";
import { Installation } from "../support/installation.ts";
import type { Machine } from "../support/machine.ts";
import { OpenclawClient } from "../support/openclaw-client.ts";
import { ScriptedDialects } from "../support/scripted-dialects.ts";
import { ScriptedEngine } from "../support/scripted-engine.ts";
import { HELLO } from "../support/scripted-model.ts";
import { waitFor } from "../support/wait-for.ts";

const guests = new URL("../guests/", import.meta.url).pathname;
const IMAGE = "fairlead-test/openclaw:1";
const GATEWAY_TOKEN = "openclaw-t0ken-93ab";
const SOON_MS = 90_000;
/** It starts in 12 s on an idle machine of two cores, and they are busy with all sorts here. */
const STARTED_MS = 240_000;
const timeout = 300_000;

const usageSchema = z.object({ groups: z.array(z.looseObject({ agentId: z.string().nullable(), calls: z.number() })) });
const modelsSchema = z.object({ data: z.array(z.object({ id: z.string() })) });

if (existsSync(`${guests}node_modules/openclaw/package.json`))
  describeWithDocker("openclaw, a third-party guest", suite);
else {
  test("openclaw, a third-party guest", ({ skip }) =>
    skip("the outside guests are not installed: `npm ci --ignore-scripts` in test/guests, 650 MB"));
}

/** The real package in an image like its own, as our presets run it: a read-only root, no capabilities. */
function suite(): void {
  let installation: Installation;
  let machine: Machine;
  let runtimeDir: string;
  const model = new ScriptedEngine();
  const dialects = new ScriptedDialects();

  beforeAll(async () => {
    await promisify(execFile)(`${guests}build-openclaw-image.sh`, [IMAGE]);
    runtimeDir = mkdtempSync("/dev/shm/fairlead-openclaw-");
    model.script = dialects.script;
    const baseUrl = `http://127.0.0.1:${await model.start()}/v1`;
    // Its prompt alone is longer than all that the demo engine can read.
    const clever = { name: "clever", baseUrl, protocols: ["chat"], models: [{ name: "one" }, { name: "two" }] };
    installation = await Installation.start("127.0.0.1", { providers: { platform: [clever] } });
    const engineConfig = { preset: "openclaw", image: IMAGE, health: { intervalSeconds: 1 } };
    machine = await installation.addMachine("Host", { engineConfig, daemonArgs: ["--runtime-dir", runtimeDir] });
    machine.startDaemon();
  });
  afterAll(async () => {
    const volumes = await docker("volume", "ls", "-q", "--filter", `label=dev.fairlead.node=${machine?.nodeId}`);
    await installation?.remove();
    for (const volume of volumes.split("\n").filter(Boolean)) await docker("volume", "rm", "-f", volume);
    await model.stop();
    rmSync(runtimeDir, { recursive: true, force: true });
  });

  test("serves its one model as an engine and requires no token of its own", { timeout }, async () => {
    await waitFor("the engine", STARTED_MS, async () => (await machine.node()).status === "active");
    expect((await machine.node()).workloads).toMatchObject([{ ready: true, models: ["openclaw/default"] }]);
    const way = z
      .object({ gatewayUrl: z.string(), authToken: z.string() })
      .parse(await (await installation.call("GET", `/v1/nodes/${machine.nodeId}/workload-connect`)).json());
    const headers = { authorization: `Bearer ${way.authToken}` };
    const { data } = modelsSchema.parse(await (await fetch(`${way.gatewayUrl}/v1/models`, { headers })).json());
    expect(data.map(({ id }) => id)).toContain("openclaw/default");
  });

  test("is reached through the relay as an agent, and its model calls arrive at the inference host", {
    timeout,
  }, async () => {
    const agent = await AgentCaller.create(installation, machine, {
      guest: "openclaw",
      config: { image: IMAGE, env: { FAIRLEAD_MODEL: "clever/two" }, health: { intervalSeconds: 1 } },
    });
    const refused = await agent.call("POST", ":start", {});
    expect(refused).toMatchObject({ status: 409, text: expect.stringContaining("OPENCLAW_GATEWAY_TOKEN") });
    await agent.want("PUT", "/secrets/OPENCLAW_GATEWAY_TOKEN", { value: GATEWAY_TOKEN });
    await agent.want("POST", ":start", {});
    await agent.until("running", STARTED_MS);

    const way = await agent.connect();
    const client = await waitFor("its gateway", SOON_MS, () => OpenclawClient.open(way, GATEWAY_TOKEN));
    expect(await client.ask("Name a pelican.")).toBe(HELLO);
    client.close();
    expect(dialects.asked).toHaveLength(1);
    expect(dialects.asked[0]).toMatchObject({ path: "/v1/chat/completions", body: { model: "two" } });
    expect(JSON.stringify(dialects.asked[0]?.body["messages"])).toContain("Name a pelican.");
    const path = `/v1/projects/${installation.projectId}/usage?groupBy=agent`;
    await waitFor("its usage", SOON_MS, async () => {
      const usage = await installation.api.find(path, usageSchema);
      return usage?.groups.find(({ agentId, calls }) => agentId === agent.id && calls > 0);
    });
    await expect(OpenclawClient.open(way, "another")).rejects.toThrow();
    await agent.want("DELETE");
  });
}
