import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildDaemon } from "../../scripts/builds/build-daemon.ts";
import { readSource } from "../../scripts/builds/checkout.ts";
import { bridgeAddress, docker, ensureDemoImage } from "../support/docker.ts";
import { ANSWER, Machine } from "../support/machine.ts";
import { Rental } from "../support/rental.ts";
import { waitFor } from "../support/wait-for.ts";
import { buildMachineImage } from "../systemd/stage/box.ts";
import { describeOnSystemd, VERSION } from "../systemd/stage/field.ts";
import { RentedMachines } from "../systemd/stage/rented-machines.ts";

const ACTIVE_MS = 180_000;
const SOON_MS = 30_000;

/** From one call to a node that answers, and back to nothing: real machines, a real installer, a real daemon, a real engine. */
describeOnSystemd("a node with a provisioned machine", () => {
  const builds = mkdtempSync(join(tmpdir(), "fairlead-builds-"));
  const machines = new RentedMachines();
  let rental: Rental;

  beforeAll(async () => {
    await buildMachineImage();
    await ensureDemoImage();
    await buildDaemon(readSource(VERSION), { architectures: ["x64"], out: builds });
    const address = await bridgeAddress();
    const settings = { builds: { dir: builds } };
    const provisioning = { docker: { enabled: true } };
    rental = await Rental.start({ address, settings, provisioning, starter: machines });
  });

  afterAll(async () => {
    await rental?.remove();
    rmSync(builds, { recursive: true, force: true });
  });

  async function expectNothingLeft(nodeId: string): Promise<void> {
    expect(rental.project.servers).toEqual([]);
    expect(await machines.boxes()).toEqual([]);
    expect(await docker("ps", "--all", "--quiet", "--filter", `label=dev.fairlead.node=${nodeId}`)).toBe("");
    expect(await docker("ps", "--all", "--quiet", "--filter", "label=dev.fairlead.machine")).toBe("");
    expect(rental.rowsOf(nodeId)).toEqual([]);
  }

  test("on a rented server is installed, becomes active, responds, and is deleted without leftovers", async () => {
    const { id, identifier, status } = await rental.rent();
    expect(status).toBe("provisioning");
    const node = await rental.untilStatus(id, "active", ACTIVE_MS);
    const answers = new Machine(rental.installation, { id, identifier }, {});
    expect(await answers.untilItAnswers()).toBe(ANSWER);
    const [box] = await machines.boxes();
    expect((await box?.run("hostname -I"))?.split(" ")).toContain(node.publicIp);
    const statuses = (await rental.events(id)).flatMap((event) => (event.status === null ? [] : [event.status]));
    expect(statuses.filter((each, at) => each !== statuses[at - 1])).toEqual([
      "provisioning",
      "bootstrapping",
      "starting",
      "active",
    ]);
    await rental.delete(id);
    await rental.untilGone(id);
    await expectNothingLeft(id);
  });

  test("continues with one machine when the control plane is killed right after the order", async () => {
    const killed = rental.killAt(({ method, path }) => method === "POST" && path === "/servers");
    // It may die before it has answered.
    await rental.rent().catch(() => null);
    await killed;
    expect(rental.project.servers).toHaveLength(1);
    await rental.installation.startServer();
    const [{ id, identifier } = { id: "", identifier: "" }] = await rental.nodes();
    await rental.untilStatus(id, "active", ACTIVE_MS);
    expect(rental.project.servers).toHaveLength(1);
    expect(await new Machine(rental.installation, { id, identifier }, {}).untilItAnswers()).toBe(ANSWER);
    const deleted = rental.killAt(({ method }) => method === "DELETE");
    await rental.delete(id);
    await deleted;
    await rental.installation.startServer();
    await rental.untilGone(id);
    await expectNothingLeft(id);
  });

  test("whose server was deleted at the provider is reported by the next sweep and in its events", async () => {
    const { id } = await rental.rent();
    await rental.untilStatus(id, "active", ACTIVE_MS);
    await waitFor("the machine to serve", SOON_MS, async () => JSON.stringify(rental.rowsOf(id)).includes('"serving"'));
    const [server] = rental.project.servers;
    const machineId = server?.parts.id ?? 0;
    rental.project.delete(machineId);
    await rental.project.settled();
    const body = { projectId: rental.installation.projectId };
    const missed = await waitFor("the sweep to miss it", SOON_MS, async () => {
      const answer = await (await rental.installation.call("POST", "/v1/nodes:sweep", body)).text();
      return answer.includes('"missing":[{') && answer;
    });
    expect(JSON.parse(missed)).toMatchObject({
      orphans: [],
      missing: [{ provider: "hetzner", nodeId: id, machineId: String(machineId) }],
    });
    await rental.installation.server.kill();
    await rental.installation.startServer();
    await waitFor("the event", SOON_MS, async () =>
      JSON.stringify(await rental.events(id)).includes(`hetzner no longer has machine ${machineId}`),
    );
    await rental.delete(id);
    await rental.untilGone(id);
    await expectNothingLeft(id);
  });

  test("runs on this machine with the docker provider", async () => {
    const { id, identifier } = await rental.rent({
      planId: "docker:debian-12",
      location: "local",
      providerToken: undefined,
    });
    await rental.untilStatus(id, "active", ACTIVE_MS);
    expect(await new Machine(rental.installation, { id, identifier }, {}).untilItAnswers()).toBe(ANSWER);
    await rental.delete(id);
    await rental.untilGone(id);
    await expectNothingLeft(id);
  });
});
