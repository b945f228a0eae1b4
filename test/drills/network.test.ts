import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { Cut } from "../support/docker-host.ts";
import type { Machine } from "../support/machine.ts";
import { waitFor } from "../support/wait-for.ts";
import { EVERY_DRILL } from "./stage/every-drill.ts";
import { expectSettled } from "./stage/settled.ts";
import { configure, describeOnStage, Stage } from "./stage/stage.ts";

const NOTICED_MS = 60_000;

/** The network between a node and the control plane, cut without a word to either. */
describeOnStage("while the network drops all packets", () => {
  let stage: Stage;
  let machine: Machine;
  let updates = 0;

  beforeAll(async () => {
    stage = await Stage.create();
    machine = await stage.addMachine("Far", stage.engineConfig(await stage.image("v0")));
    machine.startDaemon();
    await expectSettled(stage, machine, { serves: "v0" });
  });

  afterEach(() => stage.host.mend());
  afterAll(() => stage?.remove());

  test.each<Cut>(EVERY_DRILL ? ["to the host", "from the host", "both"] : ["from the host"])(
    "%s, the engine keeps running, the node becomes unreachable, and changes are applied afterwards",
    async (way) => {
      const [engine = ""] = await machine.running();
      const startedAt = await machine.startedAt(engine);
      updates += 1;
      const version = `v${updates}`;
      const image = await stage.image(version);
      await stage.host.cut(way);
      await waitFor("the node to be missed", NOTICED_MS, async () => (await machine.node()).status === "unreachable");
      await configure(stage.installation, machine, stage.engineConfig(image));
      expect([await machine.running(), await machine.startedAt(engine)]).toEqual([[engine], startedAt]);
      await stage.host.mend();
      await expectSettled(stage, machine, { serves: version });
      expect((await machine.events()).filter(({ kind }) => kind === "went_quiet")).toHaveLength(updates);
    },
  );
});
