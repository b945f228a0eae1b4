import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { nodeSecretSchema } from "@fairlead/protocol/secrets";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { type DockerCorner, dockerCorner } from "../../packages/daemon/src/testing/docker-engine.ts";
import { describeWithDocker, docker } from "../support/docker.ts";
import { Installation } from "../support/installation.ts";
import { leaksIn, readCopy, readProcesses } from "../support/leaks.ts";
import type { Machine } from "../support/machine.ts";
import { waitFor } from "../support/wait-for.ts";

const SOON_MS = 60_000;
const TMPFS = "/dev/shm";
const APP_UID = 1234;

/** No part of the platform may keep these in the clear, but where the test says so. */
const CANARY = "c4nary-f1le-7f3a9d";
const NEXT_CANARY = "c4nary-next-1b8e22";
const ENV_CANARY = "c4nary-env-55d0c1";
const NEXT_ENV_CANARY = "c4nary-envtwo-9a7b34";
const DIRECT_CANARY = "c4nary-d1rect-e61f08";
const CANARIES = [CANARY, NEXT_CANARY, ENV_CANARY, NEXT_ENV_CANARY, DIRECT_CANARY];
const FILE_VALUE = `-----BEGIN-----\n${CANARY}\n\u00e9\u{1f511}\n-----END-----\n\n`;

const secretList = z.object({ secrets: z.array(nodeSecretSchema) });

describeWithDocker("node secrets, from the API call to the container", () => {
  let corner: DockerCorner;
  let installation: Installation;
  let machine: Machine;
  let runtimeDir: string;
  const printed: string[] = [];

  beforeAll(async () => {
    corner = await dockerCorner("secrets", "app");
    installation = await Installation.start();
    runtimeDir = mkdtempSync(join(TMPFS, "fairlead-secrets-"));
    machine = await addMachine("Holder", { TOKEN: { as: "file" }, KEY: { as: "env" } });
    machine.startDaemon();
  });
  afterAll(async () => {
    await installation?.remove();
    await corner?.close();
    rmSync(runtimeDir, { recursive: true, force: true });
  });

  function addMachine(name: string, secrets: object, directSecrets = false): Promise<Machine> {
    const health = { intervalSeconds: 1, timeoutSeconds: 1 };
    const engineConfig = { image: corner.image, port: 8080, models: ["tiny"], health, secrets };
    return installation.addMachine(name, { engineConfig, directSecrets, daemonArgs: ["--runtime-dir", runtimeDir] });
  }

  async function put(name: string, value: string, of = machine): Promise<void> {
    const response = await installation.call("PUT", `/v1/nodes/${of.nodeId}/secrets/${name}`, { value });
    const answer = await response.text();
    printed.push(answer);
    if (!response.ok) throw new Error(`${response.status} ${answer}`);
  }

  async function list(of = machine): Promise<z.infer<typeof secretList>["secrets"]> {
    return (await installation.api.find(`/v1/nodes/${of.nodeId}/secrets`, secretList))?.secrets ?? [];
  }

  async function engine(of = machine): Promise<string> {
    const [container = ""] = await of.running();
    return container;
  }

  const inside = (container: string, ...command: readonly string[]): Promise<string> =>
    docker("exec", container, "/bin/busybox", ...command);
  const folder = (of = machine): string => join(runtimeDir, "secrets", of.nodeId);
  /** Beside them lies what names the container engine. */
  const containerFolders = (): string[] => readdirSync(folder()).filter((name) => !name.startsWith("."));
  const untilFile = (container: string, text: string): Promise<unknown> =>
    waitFor("the file to change", SOON_MS, async () =>
      (await inside(container, "cat", "/run/secrets/TOKEN")).includes(text),
    );
  async function untilCondition(of: Machine, message: string): Promise<void> {
    let seen = "";
    await waitFor(`the condition "${message}"`, SOON_MS, async () => {
      seen = JSON.stringify((await of.node()).conditions);
      return seen.includes(JSON.stringify(message));
    }).catch((error: unknown) => {
      throw new Error(`${seen}\n${of.daemon.lastLines()}`, { cause: error });
    });
  }

  test("that are missing are named by the waiting workload, which starts once the last one is set", async () => {
    await untilCondition(machine, "KEY is not set; TOKEN is not set");
    await put("TOKEN", FILE_VALUE);
    await waitFor("the first one to come", SOON_MS, async () => machine.daemon.log.includes("received a secret"));
    expect(await machine.containers()).toEqual([]);
    await put("KEY", ENV_CANARY);
    await machine.untilActive();
  });

  test("are files with the exact bytes, on a tmpfs, for the image's own user only, or environment variables", async () => {
    const container = await engine();
    const [name = ""] = containerFolders();
    const path = join(folder(), name, "TOKEN");
    expect(readFileSync(path, "utf8")).toBe(FILE_VALUE);
    expect([statSync(path).uid, statSync(path).mode & 0o777]).toEqual([APP_UID, 0o400]);
    expect(await inside(container, "cat", "/run/secrets/TOKEN")).toBe(FILE_VALUE.trim());
    expect(await inside(container, "id", "-u")).toBe(String(APP_UID));
    await expect(inside(container, "touch", "/run/secrets/x")).rejects.toThrow(/read-only/i);
    expect(await inside(container, "sh", "-c", "echo $KEY")).toBe(ENV_CANARY);
    expect(await list()).toMatchObject([
      { name: "KEY", version: 1, stale: false },
      { name: "TOKEN", version: 1, stale: false },
    ]);
  });

  test("are updated as files in the running container, and as variables in a new container", async () => {
    const container = await engine();
    const startedAt = await machine.startedAt(container);
    await put("TOKEN", NEXT_CANARY);
    await untilFile(container, NEXT_CANARY);
    expect([await engine(), await machine.startedAt(container)]).toEqual([container, startedAt]);
    await put("KEY", NEXT_ENV_CANARY);
    const next = await waitFor("the new container", SOON_MS, async () => {
      const running = await engine();
      return running !== "" && running !== container && running;
    });
    expect(await inside(next, "sh", "-c", "echo $KEY")).toBe(NEXT_ENV_CANARY);
    expect(await inside(next, "cat", "/run/secrets/TOKEN")).toBe(NEXT_CANARY);
    await waitFor("the old folder to go", SOON_MS, async () => containerFolders().length === 1);
  });

  test("deleted as files disappear from the running container, whose next start waits for them", async () => {
    const container = await engine();
    await installation.call("DELETE", `/v1/nodes/${machine.nodeId}/secrets/TOKEN`);
    await waitFor(
      "the file to go",
      SOON_MS,
      async () => !(await inside(container, "ls", "/run/secrets")).includes("TOKEN"),
    );
    expect(await engine()).toBe(container);
    await docker("kill", container);
    await untilCondition(machine, "TOKEN is not set");
    await waitFor("the node to degrade", SOON_MS, async () => (await machine.node()).status === "degraded");
    expect(await machine.running()).toEqual([]);
    await put("TOKEN", NEXT_CANARY);
    await machine.untilActive();
    expect(await list()).toMatchObject([
      { name: "KEY", version: 2 },
      { name: "TOKEN", version: 3 },
    ]);
  });

  test("are restored from sealed copies after a reboot without the control plane, before the container starts", async () => {
    const container = await engine();
    await machine.daemon.kill();
    await installation.server.kill();
    await docker("kill", container);
    rmSync(join(runtimeDir, "secrets"), { recursive: true });
    machine.startDaemon();
    await waitFor("the container to run", SOON_MS, async () => (await engine()) === container);
    expect(await inside(container, "cat", "/run/secrets/TOKEN")).toBe(NEXT_CANARY);
    await installation.startServer();
    await machine.untilActive();
  });

  test("of the direct kind are stale after the machine is set up again, and work once they are set again", async () => {
    const direct = await addMachine("Direct", { TOKEN: { as: "file" } }, true);
    await expect(put("TOKEN", DIRECT_CANARY, direct)).rejects.toThrow("node_not_enrolled");
    direct.startDaemon();
    await untilCondition(direct, "TOKEN is not set");
    await put("TOKEN", DIRECT_CANARY, direct);
    await direct.untilActive();
    await direct.daemon.stop();
    for (const container of await direct.containers()) await docker("rm", "-f", container);
    rmSync(direct.stateDir, { recursive: true });
    direct.giveToken(await installation.bootstrapToken(direct.nodeId));
    direct.startDaemon();
    await untilCondition(direct, "TOKEN was encrypted to a former key of this node: set it again");
    expect(await list(direct)).toMatchObject([{ name: "TOKEN", version: 1, stale: true }]);
    await put("TOKEN", DIRECT_CANARY, direct);
    await direct.untilActive();
    expect(await list(direct)).toMatchObject([{ version: 2, stale: false }]);
    expect(await inside(await engine(direct), "cat", "/run/secrets/TOKEN")).toBe(DIRECT_CANARY);
  });

  test("appear in no log, response, command line, `docker inspect` (except variables), store or state folder", async () => {
    const places = new Map([
      ...readCopy(installation.dir),
      ...readProcesses([installation.server.pid, machine.daemon.pid]),
    ]);
    expect([...places.keys()].filter((file) => /secrets\.json$|\.db|-state\.log$/.test(file)).length).toBeGreaterThan(
      3,
    );
    places.set("answers", printed.join("\n"));
    places.set("events", JSON.stringify(await machine.events()));
    const inspected = await docker("inspect", ...(await machine.containers()));
    expect(inspected).toContain(NEXT_ENV_CANARY);
    places.set("docker inspect", inspected.replaceAll(NEXT_ENV_CANARY, ""));
    expect(leaksIn(places, CANARIES)).toEqual([]);
  });

  test("leave nothing behind when the workload is removed", async () => {
    await installation.call("PATCH", `/v1/nodes/${machine.nodeId}`, { node: {}, updateMask: "engineConfig" });
    await waitFor("its containers to go", SOON_MS, async () => (await machine.containers()).length === 0);
    await waitFor("its folders to go", SOON_MS, async () => containerFolders().length === 0);
    await waitFor("the sealed ones to go", SOON_MS, async () => {
      return !readFileSync(join(machine.stateDir, "secrets.json"), "utf8").includes("jwe");
    });
  });
});
