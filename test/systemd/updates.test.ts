import { afterAll, beforeAll, expect, test } from "vitest";
import { ANSWER } from "../support/machine.ts";
import type { BoxedNode, EngineRun } from "./stage/boxed-node.ts";
import { describeOnSystemd, Field } from "./stage/field.ts";

/** Of no release; none is part of another. */
const NEXT = "72.0.1-next";
const BROKEN = "72.0.2-broken";

/** The daemon changes its own version under its real unit, hardening and guard included. */
describeOnSystemd("updates of the daemon under systemd", () => {
  let field: Field;
  let node: BoxedNode;
  let engine: EngineRun;

  beforeAll(async () => {
    field = await Field.create();
    node = await field.addNode("bookworm");
    await node.join();
    engine = await node.engine();
    // Only now: a new node takes the newest.
    field.builds.add(NEXT);
    field.builds.add(BROKEN, "does not start");
  });

  afterAll(() => field?.remove());

  const current = (): Promise<string> => node.box.run("readlink /opt/fairlead-daemon/current");

  test("the version that is asked for runs, systemd is not reloaded for it, and the run of the engine goes on", async () => {
    const { daemonVersion, daemonUpdate } = await node.update(NEXT);
    expect({ daemonVersion, daemonUpdate }).toMatchObject({ daemonVersion: NEXT, daemonUpdate: { state: "done" } });
    expect(await current()).toBe(`versions/${NEXT}`);
    expect(await node.property("NeedDaemonReload")).toBe("no");
    expect(await node.machine.untilItAnswers()).toBe(ANSWER);
    expect(await node.engine()).toEqual(engine);
  });

  test("from a version that does not start it goes back by itself, and the run of the engine goes on", async () => {
    const { daemonVersion, daemonUpdate } = await node.update(BROKEN);
    expect({ daemonVersion, daemonUpdate }).toMatchObject({
      daemonVersion: NEXT,
      daemonUpdate: { state: "rolled_back" },
    });
    expect(await current()).toBe(`versions/${NEXT}`);
    expect(await node.machine.untilItAnswers()).toBe(ANSWER);
    expect(await node.engine()).toEqual(engine);
  });

  test("a reboot begins with the version that held", async () => {
    await node.box.reboot();
    await node.untilActive();
    expect((await node.machine.node()).daemonVersion).toBe(NEXT);
  });

  test("what the updates made is removed with the rest", async () => {
    expect(await node.install(["--uninstall", "--containers"])).toMatchObject({ code: 0, errors: "" });
    expect(
      await node.box.run("ls -d /opt/fairlead-daemon /var/lib/fairlead-daemon /etc/fairlead 2>/dev/null || true"),
    ).toBe("");
    expect(await node.containers()).toEqual([]);
  });
});
