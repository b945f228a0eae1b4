import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { Installation } from "../support/installation.ts";
import type { Machine } from "../support/machine.ts";
import type { Program } from "../support/program.ts";
import { waitFor } from "../support/wait-for.ts";
import { EVERY_DRILL } from "./stage/every-drill.ts";
import { expectSettled } from "./stage/settled.ts";
import { configure, describeOnStage, Stage } from "./stage/stage.ts";

const SOON_MS = 60_000;

/** Two installations with a node each on one Docker engine, and somebody else's container with a name of ours. */
describeOnStage("on a Docker engine that others also use", () => {
  let stage: Stage;
  let other: Installation;
  let ours: Machine;
  let theirs: Machine;
  let copy: Program | null = null;

  beforeAll(async () => {
    stage = await Stage.create();
    other = await stage.addInstallation();
    ours = await stage.addMachine("Box", stage.engineConfig(await stage.image("v1")));
    theirs = await stage.addMachine("Box", stage.engineConfig(await stage.image("v1")), { installation: other });
    for (const machine of [ours, theirs]) machine.startDaemon();
    await settled("v1", "v1");
  });

  afterEach(async () => {
    await copy?.kill();
    copy = null;
  });
  afterAll(() => stage?.remove());

  async function settled(our: string, their: string): Promise<void> {
    await expectSettled(stage, ours, { serves: our });
    await expectSettled(stage, theirs, { serves: their, installation: other });
  }

  test("each daemon leaves the other's engine alone during updates, crashes and stops", async () => {
    const [engine = ""] = await theirs.running();
    const startedAt = await theirs.startedAt(engine);
    await configure(stage.installation, ours, stage.engineConfig(await stage.image("v2")));
    await settled("v2", "v1");
    await ours.daemon.kill();
    await ours.docker("kill", ...(await ours.running()));
    ours.startDaemon();
    await settled("v2", "v1");
    await stage.installation.call("PATCH", `/v1/nodes/${ours.nodeId}`, { node: {}, updateMask: "engineConfig" });
    await expectSettled(stage, ours, { serves: null });
    expect([await theirs.running(), await theirs.startedAt(engine)]).toEqual([[engine], startedAt]);
    await configure(stage.installation, ours, stage.engineConfig(await stage.image("v2")));
    await settled("v2", "v1");
  });

  if (EVERY_DRILL)
    test("a foreign container that uses our name is reported by name and left alone, and ours starts once the name is free", async () => {
      const [engine = ""] = await ours.containers();
      const name = (await ours.docker("inspect", "-f", "{{.Name}}", engine)).slice(1);
      await ours.daemon.kill();
      await ours.docker("rm", "-f", engine);
      const image = "fairlead-drill/bystander-none:1";
      const foreign = await ours.docker("run", "-d", "--name", name, "--label", "dev.fairlead.workload=engine", image);
      const startedAt = await ours.startedAt(foreign);
      ours.startDaemon();
      const because = new RegExp(`another container uses the name ${name}; remove or rename it`);
      await waitFor("the node to tell", SOON_MS, async () => because.test((await ours.node()).statusMessage));
      expect((await ours.node()).status).toBe("degraded");
      expect(await ours.containers()).toEqual([]);
      expect(await ours.startedAt(foreign)).toBe(startedAt);
      await ours.docker("rename", foreign, "bystander-renamed");
      await settled("v2", "v1");
      expect(await ours.startedAt(foreign)).toBe(startedAt);
      await ours.docker("rm", "-f", foreign);
    });

  if (EVERY_DRILL)
    test("a second daemon with a copied state folder is reported, and in the end there is one container of each workload", async () => {
      const [engine = ""] = await ours.running();
      const startedAt = await ours.startedAt(engine);
      copy = ours.startCopy();
      await waitFor("the event", SOON_MS, async () =>
        (await ours.events()).some(({ kind }) => kind === "identity_in_use_twice"),
      );
      // Both do what is asked for, and get into each other's way.
      await configure(stage.installation, ours, stage.engineConfig(await stage.image("v3")));
      await waitFor("the update", SOON_MS, async () => (await ours.ask()) === "v3");
      await copy.kill();
      await expectSettled(stage, ours, { serves: "v3" });
      await expectSettled(stage, theirs, { serves: "v1", installation: other });
      expect(startedAt).not.toBe("");
    });
});
