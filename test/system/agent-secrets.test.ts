import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { agentSecretSchema } from "@fairlead/protocol/agents";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { type DockerCorner, dockerCorner } from "../../packages/daemon/src/testing/docker-engine.ts";
import { AgentCaller } from "../support/agent-calls.ts";
import { describeWithDocker, docker } from "../support/docker.ts";
import { Installation } from "../support/installation.ts";
import { leaksIn, readCopy, readProcesses } from "../support/leaks.ts";
import type { Machine } from "../support/machine.ts";
import { waitFor } from "../support/wait-for.ts";

const SOON_MS = 60_000;
const APP_UID = 1234;

/** No part of the platform may keep these in the clear, but where the test says so. */
const CANARY = "c4nary-agent-6c1f07";
const NEXT_CANARY = "c4nary-later-e4b290";
const ENV_CANARY = "c4nary-slack-19ad5e";
const DIRECT_CANARY = "c4nary-moved-77f3c8";
const CANARIES = [CANARY, NEXT_CANARY, ENV_CANARY, DIRECT_CANARY];
const FILE_VALUE = `-----BEGIN-----\n${CANARY}\né\u{1f511}\n-----END-----\n\n`;

const secretList = z.object({ secrets: z.array(agentSecretSchema) });

describeWithDocker("agent secrets, from the API call to the container", () => {
  let corner: DockerCorner;
  let installation: Installation;
  let host: Machine;
  let direct: Machine;
  let agent: AgentCaller;
  let runtimeDir: string;
  const printed: string[] = [];

  beforeAll(async () => {
    corner = await dockerCorner("agent-secrets", "app");
    installation = await Installation.start("127.0.0.1", { connectors: [CHAT] });
    runtimeDir = mkdtempSync("/dev/shm/fairlead-agent-secrets-");
    const daemonArgs = ["--runtime-dir", runtimeDir];
    host = await installation.addMachine("Host", { engineConfig: null, daemonArgs });
    direct = await installation.addMachine("Direct", { engineConfig: null, daemonArgs, directSecrets: true });
    for (const machine of [host, direct]) machine.startDaemon();
    await Promise.all([host.untilActive(), direct.untilActive()]);
    agent = await AgentCaller.create(installation, host, {
      guest: corner.image,
      connectorSlugs: ["chat"],
      config: { secrets: { TOKEN: { as: "file" } } },
    });
  });
  afterAll(async () => {
    await installation?.remove();
    await corner?.close();
    rmSync(runtimeDir, { recursive: true, force: true });
  });

  async function put(name: string, value: string): Promise<void> {
    printed.push(JSON.stringify(await agent.want("PUT", `/secrets/${name}`, { value })));
  }

  async function startRefused(): Promise<unknown> {
    const { status, text } = await agent.call("POST", ":start", {});
    printed.push(text);
    expect(status).toBe(409);
    return JSON.parse(text);
  }

  const list = async () => secretList.parse(await agent.want("GET", "/secrets")).secrets;

  async function container(on: Machine): Promise<string> {
    const [found = ""] = await agent.containers(on);
    return found;
  }

  const inside = (id: string, ...command: readonly string[]): Promise<string> =>
    docker("exec", id, "/bin/busybox", ...command);
  const untilFile = (id: string, text: string): Promise<unknown> =>
    waitFor("the file to change", SOON_MS, async () => (await inside(id, "cat", "/run/secrets/TOKEN")).includes(text));

  test("that are missing at a start are named, together with the connector that requires them", async () => {
    await put("TOKEN", FILE_VALUE);
    expect(await startRefused()).toMatchObject({
      error: {
        code: "missing_secrets",
        missingSecrets: [
          { name: "CHAT_KEY", connectorSlug: "chat", stale: false },
          { name: "chat.id", connectorSlug: "chat", stale: false },
        ],
      },
    });
    await put("CHAT_KEY", ENV_CANARY);
    await put("chat.id", "room-1");
    await agent.want("POST", ":start", {});
    await agent.until("running");
  });

  test("are provided as the connector or config says: as a file with the exact bytes, a variable, or a file's path", async () => {
    const id = await container(host);
    const folder = join(runtimeDir, "secrets", host.nodeId);
    const [name = ""] = folders(host);
    const path = join(folder, name, "TOKEN");
    expect(readFileSync(path, "utf8")).toBe(FILE_VALUE);
    expect([statSync(path).uid, statSync(path).mode & 0o777]).toEqual([APP_UID, 0o400]);
    expect(await inside(id, "sh", "-c", "echo $KEY_OF_CHAT")).toBe(ENV_CANARY);
    expect(await inside(id, "sh", "-c", "cat $CHAT_ID_PATH")).toBe("room-1");
    expect((await inside(id, "ls", "/run/secrets")).split(/\s+/)).toEqual(["TOKEN", "chat.id", "fairlead-token"]);
  });

  test("are changed and deleted as files in the running container, without a new container", async () => {
    const id = await container(host);
    await put("TOKEN", NEXT_CANARY);
    await untilFile(id, NEXT_CANARY);
    await agent.want("DELETE", "/secrets/TOKEN");
    await waitFor("the file to go", SOON_MS, async () => !(await inside(id, "ls", "/run/secrets")).includes("TOKEN"));
    await put("TOKEN", NEXT_CANARY);
    await untilFile(id, NEXT_CANARY);
    expect(await container(host)).toBe(id);
    expect(await list()).toMatchObject([{ name: "CHAT_KEY" }, { name: "TOKEN", version: 3 }, { name: "chat.id" }]);
  });

  test("follow the agent from a node without direct secrets to one with direct secrets", async () => {
    await agent.want("PATCH", "", { runtimeProvider: `node:${direct.nodeId}` });
    await waitFor("it to run there", SOON_MS, async () => (await agent.get()).runtime["nodeId"] === direct.nodeId);
    await agent.until("running");
    expect(await inside(await container(direct), "cat", "/run/secrets/TOKEN")).toBe(NEXT_CANARY);
    expect(await agent.containers(direct)).toHaveLength(1);
  });

  test("set on a node with direct secrets are stale after a move back, until they are set again", async () => {
    await put("TOKEN", DIRECT_CANARY);
    await untilFile(await container(direct), DIRECT_CANARY);
    await agent.want("POST", ":stop", {});
    await agent.until("stopped");
    await agent.want("PATCH", "", { runtimeProvider: `node:${host.nodeId}` });
    expect(await startRefused()).toMatchObject({
      error: { missingSecrets: [{ name: "TOKEN", connectorSlug: null, stale: true }] },
    });
    await put("TOKEN", CANARY);
    await agent.want("POST", ":start", {});
    await agent.until("running");
    expect(await inside(await container(host), "cat", "/run/secrets/TOKEN")).toBe(CANARY);
  });

  test("appear in no log, response, command line, `docker inspect` (except variables), store or state folder", async () => {
    const pids = [installation.server.pid, host.daemon.pid, direct.daemon.pid];
    const places = new Map([...readCopy(installation.dir), ...readProcesses(pids)]);
    expect([...places.keys()].filter((file) => /secrets\.json$|\.db|-state\.log$/.test(file)).length).toBeGreaterThan(
      4,
    );
    for (const path of ["", "/config", "/events", "/secrets", "/logs?tail=100"])
      printed.push((await agent.call("GET", path)).text);
    places.set("answers", printed.join("\n"));
    const inspected = await docker("inspect", await container(host));
    expect(inspected).toContain(ENV_CANARY);
    places.set("docker inspect", inspected.replaceAll(ENV_CANARY, ""));
    expect(leaksIn(places, CANARIES)).toEqual([]);
  });

  test("leave no file and no sealed copy after the agent is deleted", async () => {
    await agent.want("DELETE");
    await waitFor("it to go", SOON_MS, async () => (await agent.call("GET")).status === 404);
    for (const machine of [host, direct]) {
      await waitFor("its folders to go", SOON_MS, async () => folders(machine).length === 0);
      await waitFor("the sealed ones to go", SOON_MS, async () => {
        return !readFileSync(join(machine.stateDir, "secrets.json"), "utf8").includes(agent.id);
      });
    }
  });

  /** Beside them lies what names the container engine. */
  const folders = ({ nodeId }: Machine): string[] =>
    readdirSync(join(runtimeDir, "secrets", nodeId)).filter((name) => !name.startsWith("."));
});

/** As whoever runs a server adds one. */
const CHAT = {
  slug: "chat",
  description: "A room to talk in.",
  secrets: [
    { name: "CHAT_KEY", as: "env", variable: "KEY_OF_CHAT" },
    { name: "chat.id", as: "file", variable: "CHAT_ID_PATH" },
  ],
};
