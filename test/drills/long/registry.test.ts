import { afterAll, beforeAll, test } from "vitest";
import type { Machine } from "../../support/machine.ts";
import { waitFor } from "../../support/wait-for.ts";
import { expectSettled } from "../stage/settled.ts";
import { configure, describeOnStage, Stage } from "../stage/stage.ts";

/** A pull without news is given up after two minutes. */
const GIVEN_UP_MS = 150_000;

/** A registry that never fails and never ends. */
describeOnStage("while the registry", () => {
  let stage: Stage;
  let machine: Machine;

  beforeAll(async () => {
    stage = await Stage.create();
    machine = await stage.addMachine("Pulling", stage.engineConfig(await stage.image("v1")));
    machine.startDaemon();
    await expectSettled(stage, machine, { serves: "v1" });
  });

  afterAll(() => stage?.remove());

  test.each([
    ["answers nothing", "hung", "v2"],
    ["stops in the middle of a layer", "stalled", "v3"],
  ] as const)("%s, the pull is given up, told, and tried again", async (_what, fault, version) => {
    const image = await stage.image(version, "large");
    const before = (await machine.ask()) as string;
    stage.registry.turn(fault);
    await configure(stage.installation, machine, stage.engineConfig(image));
    await waitFor("the pull to be given up", GIVEN_UP_MS, async () =>
      (await machine.events()).some(({ kind, message }) => kind === "step_failed" && message.includes(image)),
    );
    await expectSettled(stage, machine, { serves: before, because: /cannot pull .*(no news of the pull|aborted)/i });
    stage.registry.turn("none");
    await expectSettled(stage, machine, { serves: version });
  });
});
