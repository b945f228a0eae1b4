import { existsSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { waitFor } from "../support/wait-for.ts";
import { EVERY_DRILL } from "./stage/every-drill.ts";
import { expectSettled } from "./stage/settled.ts";
import { configure, describeOnStage, Stage } from "./stage/stage.ts";

const SOON_MS = 60_000;
const LIBRARY = ["x86_64", "aarch64"]
  .map((architecture) => `/usr/lib/${architecture}-linux-gnu/faketime/libfaketime.so.1`)
  .find((path) => existsSync(path));

/** Moves the wall clock of one process; the monotonic one goes on as it does on a machine whose clock is wrong. */
const withClock = (offset: string): string[] => [
  "env",
  `LD_PRELOAD=${LIBRARY}`,
  `FAKETIME=${offset}`,
  "FAKETIME_DONT_FAKE_MONOTONIC=1",
];

/** A machine whose clock is an hour off, from before it enrols. */
describeOnStage("a machine whose clock is wrong", () => {
  let stage: Stage;

  beforeAll(async () => {
    stage = await Stage.create();
  });
  afterAll(() => stage?.remove());

  const clocks = [
    { way: "ahead of", offset: "+1h", versions: ["v1", "v2"] },
    { way: "behind", offset: "-1h", versions: ["v3", "v4"] },
  ] as const;
  test.for(EVERY_DRILL ? clocks : clocks.slice(0, 1))(
    "by an hour ($way the platform's) enrolls, runs, is updated and renews its identity, and the node reports the skew",
    async ({ way, offset, versions: [first, second] }, { skip }) => {
      if (LIBRARY === undefined) skip("there is no faketime on this machine (Debian: faketime)");
      const before = withClock(offset);
      const config = stage.engineConfig(await stage.image(first));
      const machine = await stage.addMachine(`Clock ${way}`, config, { before });
      machine.startDaemon();
      await expectSettled(stage, machine, { serves: first });
      const clock = await waitFor("the condition", SOON_MS, async () =>
        (await machine.node()).conditions.find(({ reason }) => reason === "clock_skew"),
      );
      expect(clock.message).toMatch(new RegExp(`^the clock is 3(59|60)\\d s ${way} the platform's$`));
      await configure(stage.installation, machine, stage.engineConfig(await stage.image(second)));
      await expectSettled(stage, machine, { serves: second });
      // From the identity on disk, whose tokens are made anew.
      await machine.daemon.kill();
      machine.startDaemon();
      await machine.untilItLogs("link established");
      await expectSettled(stage, machine, { serves: second });
    },
  );
});
