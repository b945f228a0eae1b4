import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { Machine } from "../support/machine.ts";
import { waitFor } from "../support/wait-for.ts";
import { EVERY_DRILL } from "./stage/every-drill.ts";
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

  test("a pull that would fill it is rejected, the node reports it and keeps serving, and the pull succeeds once there is space", async () => {
    const image = await stage.image("v2", "large");
    leaveFree(18);
    await configure(stage.installation, machine, stage.engineConfig(image));
    await expectSettled(stage, machine, {
      serves: "v1",
      because: /no_room could not pull an image: too little disk space/,
    });
    expect((await machine.node()).status).toBe("active");
    leaveFree(null);
    await expectSettled(stage, machine, { serves: "v2" });
  });

  if (EVERY_DRILL)
    test("to the last byte, the engine keeps serving, the node reports it, and an update waits for space", async () => {
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

  if (EVERY_DRILL)
    test("under the daemon's own folder, an update still succeeds, and is saved once there is space", async () => {
      const own = await stage.addMachine("Own", stage.engineConfig(await stage.image("v4")));
      mkdirSync(own.stateDir);
      execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m,mode=700", "fairlead-drill", own.stateDir]);
      try {
        own.startDaemon();
        await expectSettled(stage, own, { serves: "v4" });
        const filler = join(own.stateDir, "somebody-elses");
        expect(() => writeFileSync(filler, Buffer.alloc(2 * MEGABYTE))).toThrow("ENOSPC");
        await configure(stage.installation, own, stage.engineConfig(await stage.image("v5")));
        await expectSettled(stage, own, { serves: "v5" });
        await own.untilItLogs("could not save the desired state; it applies until the daemon restarts");
        rmSync(filler);
        const kept = (): string => readFileSync(join(own.stateDir, "desired.json"), "utf8");
        await waitFor("the state to be kept", SOON_MS, async () => kept().includes("/v5-none@"));
      } finally {
        await own.remove();
        execFileSync("umount", [own.stateDir]);
      }
    });
});
