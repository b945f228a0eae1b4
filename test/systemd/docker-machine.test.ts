import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { DockerMachines } from "../../packages/control-plane/src/fleet/machines/docker/docker-machines.ts";
import { systemClock } from "../../packages/protocol/src/values/clock.ts";
import { buildDaemon } from "../../scripts/builds/build-daemon.ts";
import { readSource } from "../../scripts/builds/checkout.ts";
import { docker, ensureDemoImage } from "../support/docker.ts";
import { Installation } from "../support/installation.ts";
import { ANSWER, Machine } from "../support/machine.ts";
import { waitFor } from "../support/wait-for.ts";
import { buildMachineImage } from "./stage/box.ts";
import { describeOnSystemd, VERSION } from "./stage/field.ts";

const IMAGE = "fairlead/machine:debian-12";
const SECRET = 'o\'pen\n"sesame" ü';

/** What a person gets who tries it all on one machine: systemd, the installer and the daemon, beside the host's own engine. */
describeOnSystemd("a machine of the docker provider", () => {
  const builds = mkdtempSync(join(tmpdir(), "fairlead-builds-"));
  const provider = new DockerMachines({
    socketPath: "/var/run/docker.sock",
    image: IMAGE,
    installationId: `ins_test_${process.pid}`,
    clock: systemClock,
  });
  let installation: Installation;
  let node: Machine;
  let machineId = "";

  beforeAll(async () => {
    await buildMachineImage();
    await ensureDemoImage();
    await buildDaemon(readSource(VERSION), { architectures: ["x64"], out: builds });
    installation = await Installation.start("127.0.0.1", { builds: { dir: builds } });
    const engineConfig = { preset: "fairlead-demo", secrets: { TOKEN: { as: "file" } } };
    node = new Machine(installation, await installation.createNode("rented", { engineConfig }), {});
    await installation.call("PUT", `/v1/nodes/${node.nodeId}/secrets/TOKEN`, { value: SECRET });
  });

  afterAll(async () => {
    if (machineId !== "") await provider.delete("", machineId);
    await installation?.remove();
    rmSync(builds, { recursive: true, force: true });
  });

  async function untilActive(): Promise<void> {
    await waitFor("the node to be active", 120_000, async () => (await node.node()).status === "active").catch(
      async (error: unknown) => {
        const journal = await docker("exec", machineId, "journalctl", "-n", "60", "--no-pager", "-o", "cat");
        throw new Error(`${JSON.stringify(await node.node())}\n${journal}`, { cause: error });
      },
    );
  }

  async function secretInside(): Promise<string> {
    const [engine = ""] = await node.running();
    const pid = await docker("inspect", "--format", "{{.State.Pid}}", engine);
    // The engine's image has no shell.
    return readFileSync(`/proc/${pid}/root/run/secrets/TOKEN`, "utf8");
  }

  test("installs the daemon from its user data, and the engine runs beside it with its secrets", async () => {
    const token = await installation.bootstrapToken(node.nodeId);
    const userData = `#!/bin/sh
export FAIRLEAD_BOOTSTRAP_TOKEN=${token}
curl -fsSL ${installation.platformUrl}/install.sh | sh
`;
    const name = `machine-${process.pid}`;
    const request = { label: "mrq_rented", name, type: "debian-12", location: "local", userData };
    machineId = (await provider.create("", request)).id;
    await untilActive();
    expect(await node.untilItAnswers()).toBe(ANSWER);
    expect(await secretInside()).toBe(SECRET);
  });

  test("is the same node after a restart, and does not run its user data again", async () => {
    await docker("restart", "--time", "60", machineId);
    await waitFor("the daemon of the new start", 120_000, async () => {
      const state = await docker("exec", machineId, "systemctl", "is-active", "fairlead-daemon");
      return state === "active";
    });
    await untilActive();
    expect(await node.untilItAnswers()).toBe(ANSWER);
    expect(await secretInside()).toBe(SECRET);
    const ran = ["show", "fairlead-user-data", "--property=ConditionResult", "--value"];
    expect(await docker("exec", machineId, "systemctl", ...ran)).toBe("no");
  });

  test("leaves no machine, engine or volume when it is deleted", async () => {
    await provider.delete("", machineId);
    expect(await provider.get("", machineId)).toBeNull();
    expect(await node.containers()).toEqual([]);
    const volumes = await docker("volume", "ls", "--quiet");
    expect(volumes.split("\n").filter((name) => name.includes(node.nodeId) || name.includes("machine-"))).toEqual([]);
  });
});
