import { afterAll, beforeAll, expect, test } from "vitest";
import { ANSWER } from "../../support/machine.ts";
import type { BoxedNode, EngineRun } from "../stage/boxed-node.ts";
import { describeOnSystemd, Field, VERSION } from "../stage/field.ts";

/** Of no release; none is part of another. */
const HUNG = "73.0.1-hung";
const LOST = "73.0.2-lost";

/** Updates to versions that run, and yet are no good: only systemd's clock and the trial's own find that out. */
describeOnSystemd("updates to versions that hang", () => {
  let field: Field;
  let node: BoxedNode;
  let engine: EngineRun;

  beforeAll(async () => {
    field = await Field.create();
    node = await field.addNode("bookworm");
    await node.box.run(`mkdir -p /etc/fairlead /run/systemd/system/fairlead-daemon.service.d
      echo FAIRLEAD_DAEMON_TRIAL_SECONDS=20 >/etc/fairlead/daemon.env
      printf '[Service]\\nTimeoutStartSec=10\\n' >/run/systemd/system/fairlead-daemon.service.d/start.conf`);
    await node.join();
    engine = await node.engine();
    // Only now: a new node takes the newest.
    field.builds.add(HUNG, "hangs before it starts");
    field.builds.add(LOST, "never reaches the control plane");
  });

  afterAll(() => field?.remove());

  const expectTheOneBefore = async (): Promise<void> => {
    expect(await node.box.run("readlink /opt/fairlead-daemon/current")).toBe(`versions/${VERSION}`);
    expect(await node.machine.untilItAnswers()).toBe(ANSWER);
    expect(await node.engine()).toEqual(engine);
  };

  test("are rolled back if the version never reports its start and systemd kills it three times", async () => {
    expect(await node.update(HUNG)).toMatchObject({ daemonVersion: VERSION, daemonUpdate: { state: "rolled_back" } });
    await expectTheOneBefore();
  });

  test("are rolled back if the version starts but never reaches the platform", async () => {
    expect(await node.update(LOST)).toMatchObject({ daemonVersion: VERSION, daemonUpdate: { state: "rolled_back" } });
    await expectTheOneBefore();
  });
});
