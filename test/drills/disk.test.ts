import { rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { Machine } from "../support/machine.ts";
import { waitFor } from "../support/wait-for.ts";
import { expectSettled } from "./stage/settled.ts";
import { configure, describeOnStage, Stage } from "./stage/stage.ts";

const SOON_MS = 60_000;
const MEGABYTE = 1024 * 1024;

/** A small disk under the Docker engine, which something else fills up. */
describeOnStage("when the disk is full", () => {
  let stage: Stage;
  let machine: Machine;

  beforeAll(async () => {
    stage = await Stage.create({ host: { diskMegabytes: 128 } });
    machine = await stage.addMachine("Full", stage.engineConfig(await stage.image("v1")));
    machine.startDaemon();
    await expectSettled(stage, machine, { serves: "v1" });
  });

  afterEach(() => leaveFree(null));
  afterAll(() => stage?.remove());

  /** Fills the disk up to so many megabytes; null: not at all. */
  function leaveFree(megabytes: number | null): void {
    const file = join(stage.host.dataRoot, "somebody-elses");
    rmSync(file, { force: true });
    if (megabytes === null) return;
    const { bavail, bsize } = statfsSync(stage.host.dataRoot);
    writeFileSync(file, Buffer.alloc(bavail * bsize - megabytes * MEGABYTE));
  }

  test("a pull that would fill it is refused, the node says so and serves on, and it is done once there is room", async () => {
    const image = await stage.image("v2", "large");
    leaveFree(20);
    await configure(stage.installation, machine, stage.engineConfig(image));
    await expectSettled(stage, machine, {
      serves: "v1",
      because: /no_room an image was not pulled: too little disk space/,
    });
    expect((await machine.node()).status).toBe("active");
    leaveFree(null);
    await expectSettled(stage, machine, { serves: "v2" });
  });

  test("to the last byte, the engine serves on, the node tells of it, and an update waits for room", async () => {
    const image = await stage.image("v3");
    leaveFree(0);
    await waitFor("the node to tell", SOON_MS, async () =>
      (await machine.node()).conditions.some(({ type, reason }) => type === "disk" && reason === "disk_pressure"),
    );
    await configure(stage.installation, machine, stage.engineConfig(image));
    await expectSettled(stage, machine, { serves: "v2", because: /cannot pull/ });
    leaveFree(null);
    await expectSettled(stage, machine, { serves: "v3" });
  });
});
