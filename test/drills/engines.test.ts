import { statSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Machine } from "../support/machine.ts";
import { waitFor } from "../support/wait-for.ts";
import { EVERY_DRILL } from "./stage/every-drill.ts";
import type { EngineFault } from "./stage/images.ts";
import { expectSettled } from "./stage/settled.ts";
import { configure, describeOnStage, Stage } from "./stage/stage.ts";

const SOON_MS = 60_000;
/** Docker's limit for one container's log, all of its files (docs/daemon.md), and one line. */
const LOG_BYTES = 3 * 10_000_000 + 1000;

/** Engines that misbehave, each as an update of one that works. */
describeOnStage("an update to an engine", () => {
  let stage: Stage;
  let machine: Machine;

  beforeAll(async () => {
    stage = await Stage.create();
    machine = await stage.addMachine("Engine", stage.engineConfig(await stage.image("v1")));
    machine.startDaemon();
    await expectSettled(stage, machine, { serves: "v1" });
  });

  afterAll(() => stage?.remove());

  async function update(version: string, fault: EngineFault = "none", more: object = {}): Promise<void> {
    await configure(stage.installation, machine, stage.engineConfig(await stage.image(version, fault), more));
  }

  test("that exits immediately is rolled back, and the old one keeps running", async () => {
    const [before = ""] = await machine.running();
    const startedAt = await machine.startedAt(before);
    await update("broken", "broken");
    await expectSettled(stage, machine, { serves: "v1", because: /failed and was undone: exit code 3/ });
    // It answers as soon as it is ready, and is active once its daemon has said so.
    await machine.untilActive();
    expect([await machine.running(), await machine.startedAt(before)]).toEqual([[before], startedAt]);
  });

  test.each(["https://ghcr.io/example/engine:1", "example/engine@"])(
    "with the invalid image name %s is rejected and stops nothing",
    async (image) => {
      const before = await machine.ask();
      const update = configure(stage.installation, machine, stage.engineConfig(image));
      await expect(update).rejects.toThrow(/400 .*"param":"node\.engineConfig\.image"/);
      expect(await machine.ask()).toBe(before);
      expect([machine.daemon.running, (await machine.node()).status]).toEqual([true, "active"]);
    },
  );

  if (EVERY_DRILL)
    test("that never becomes healthy is rolled back, and the node reports its health check's response", async () => {
      await update("never", "never-healthy");
      await expectSettled(stage, machine, {
        serves: "v1",
        because: /failed and was undone: unhealthy: \/health returned 503/,
      });
      // It answers as soon as it is ready, and is active once its daemon has said so.
      await machine.untilActive();
    });

  if (EVERY_DRILL)
    test("that starts slowly is done once it is healthy", async () => {
      await update("v2", "slow", { health: { intervalSeconds: 1, startPeriodSeconds: 30 } });
      await expectSettled(stage, machine, { serves: "v2" });
    });

  test("that exits immediately is rolled back to the old one if there is no room for both", async () => {
    const before = await machine.ask();
    await update("broken", "broken", { update: "stop-first" });
    await expectSettled(stage, machine, { serves: before, because: /failed and was undone: exit code 3/ });
    // It answers as soon as it is ready, and is active once its daemon has said so.
    await machine.untilActive();
  });

  test("that dies after becoming ready is reported with its exit code and count, and the next update succeeds", async () => {
    await update("v3", "dies-after-ready");
    await waitFor("the node to tell", SOON_MS, async () => {
      const { status, statusMessage } = await machine.node();
      return status === "degraded" && /exited with code 4 (twice|[3-9] times) in a row/.test(statusMessage);
    });
    const ends = (await machine.events()).filter(({ kind }) => kind === "workload_exited");
    expect(ends[0]?.message).toMatch(/exited with code 4; restarting in \d+ s$/);
    await update("v4");
    await expectSettled(stage, machine, { serves: "v4" });
  });

  if (EVERY_DRILL)
    test("that ignores SIGTERM is done, as is the next one, because it is killed after the grace period", async () => {
      await update("v5", "stubborn");
      await expectSettled(stage, machine, { serves: "v5" });
      await update("v6");
      await expectSettled(stage, machine, { serves: "v6" });
    });

  test("that writes endless logs does not fill the disk, and can be updated", async () => {
    await update("v7", "chatty");
    await expectSettled(stage, machine, { serves: "v7" });
    const [container = ""] = await machine.running();
    const path = await machine.docker("inspect", "-f", "{{.LogPath}}", container);
    const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0;
    await waitFor("its log to be cut", SOON_MS, async () => sizeOf(`${path}.2`) > 0);
    expect([path, `${path}.1`, `${path}.2`].reduce((sum, file) => sum + sizeOf(file), 0)).toBeLessThan(LOG_BYTES);
    expect(sizeOf(`${path}.3`)).toBe(0);
    expect(machine.daemon.log.length).toBeLessThan(1_000_000);
    await update("v8");
    await expectSettled(stage, machine, { serves: "v8" });
  });
});
