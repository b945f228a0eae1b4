import { rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Machine } from "../support/machine.ts";
import { waitFor } from "../support/wait-for.ts";
import { EVERY_DRILL } from "./stage/every-drill.ts";
import { expectSettled } from "./stage/settled.ts";
import { configure, describeOnStage, Stage } from "./stage/stage.ts";

const SOON_MS = 60_000;

/** A Docker engine that takes its containers down with it, as it comes from the package. */
describeOnStage("a machine on its own", () => {
  let stage: Stage;
  let machine: Machine;

  beforeAll(async () => {
    stage = await Stage.create({ host: { liveRestore: false } });
    machine = await stage.addMachine("Alone", stage.engineConfig(await stage.image("v1")));
    machine.startDaemon();
    await expectSettled(stage, machine, { serves: "v1" });
  });

  afterAll(() => stage?.remove());

  const untilOneRuns = (): Promise<string> =>
    waitFor("one engine to run", SOON_MS, async () => {
      const [running = "", ...others] = await machine.running();
      return running !== "" && others.length === 0 && (await machine.containers()).length === 1 && running;
    });

  test.each(EVERY_DRILL ? [0, 60] : [0])(
    "restarts its engine in the same container after dockerd was stopped for at least %i s",
    async (seconds) => {
      const [engine] = await machine.containers();
      await stage.host.stopDocker();
      // Two reports, in no order: that Docker cannot be asked, and that the engine, which it took along, answers no more.
      await waitFor("the node to tell", SOON_MS, async () => {
        const { status, conditions } = await machine.node();
        return (
          status === "degraded" && conditions.some(({ type, reason }) => type === "docker" && reason === "unavailable")
        );
      });
      await sleep(seconds * 1000);
      await stage.host.startDocker();
      await stage.bystanders.acceptAsTheyAre();
      await expectSettled(stage, machine, { serves: "v1" });
      expect(await machine.containers()).toEqual([engine]);
    },
  );

  if (EVERY_DRILL)
    test("recovers without a control plane from an engine crash or removal, a restart of dockerd or the daemon, and a reboot", async () => {
      await stage.installation.server.kill();
      await machine.docker("kill", "--signal", "KILL", await untilOneRuns());
      await untilOneRuns();

      await machine.docker("rm", "-f", await untilOneRuns());
      await untilOneRuns();

      await stage.host.stopDocker();
      await stage.host.startDocker();
      await untilOneRuns();

      await machine.daemon.kill();
      machine.startDaemon();
      await machine.untilItLogs("could not open the link");
      await untilOneRuns();

      // What a reboot leaves: nothing runs, and nothing is on the tmpfs.
      await machine.daemon.kill();
      await stage.host.stopDocker();
      rmSync(join(stage.runtimeDir, "secrets"), { recursive: true });
      machine.startDaemon();
      await machine.untilItLogs("the container engine does not respond");
      await stage.host.startDocker();
      const engine = await untilOneRuns();
      expect(await machine.docker("exec", engine, "/bin/busybox", "cat", "/run/secrets/TOKEN")).toContain(
        "c4nary-t0ken",
      );

      await stage.bystanders.acceptAsTheyAre();
      await stage.installation.startServer();
      // The tunnel, and with it an answer, may be there before the link; and whom a server has not heard yet, it does not miss.
      await machine.untilItLogs("link established");
      await expectSettled(stage, machine, { serves: "v1" });
      expect(await machine.containers()).toEqual([engine]);
    });

  test("immediately applies changes that were made while its daemon was stopped", async () => {
    await machine.daemon.kill();
    await waitFor("the node to be missed", SOON_MS, async () => (await machine.node()).status === "unreachable");
    await configure(stage.installation, machine, stage.engineConfig(await stage.image("v2")));
    machine.startDaemon();
    await expectSettled(stage, machine, { serves: "v2" });
  });
});
