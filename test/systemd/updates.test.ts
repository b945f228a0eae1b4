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

  test("run the requested version without reloading systemd, and the engine keeps running", async () => {
    const { daemonVersion, daemonUpdate } = await node.update(NEXT);
    expect({ daemonVersion, daemonUpdate }).toMatchObject({ daemonVersion: NEXT, daemonUpdate: { state: "done" } });
    expect(await current()).toBe(`versions/${NEXT}`);
    expect(await node.property("NeedDaemonReload")).toBe("no");
    expect(await node.machine.untilItAnswers()).toBe(ANSWER);
    expect(await node.engine()).toEqual(engine);
  });

  test("are rolled back if the version does not start, and the engine keeps running", async () => {
    const { daemonVersion, daemonUpdate } = await node.update(BROKEN);
    expect({ daemonVersion, daemonUpdate }).toMatchObject({
      daemonVersion: NEXT,
      daemonUpdate: { state: "rolled_back" },
    });
    expect(await current()).toBe(`versions/${NEXT}`);
    expect(await node.machine.untilItAnswers()).toBe(ANSWER);
    expect(await node.engine()).toEqual(engine);
  });

  test("survive a reboot, which starts the version that was kept", async () => {
    await node.box.reboot();
    await node.untilActive();
    expect((await node.machine.node()).daemonVersion).toBe(NEXT);
  });

  test("leave nothing behind after the daemon is uninstalled", async () => {
    expect(await node.install(["--uninstall", "--containers"])).toMatchObject({ code: 0, errors: "" });
    expect(
      await node.box.run("ls -d /opt/fairlead-daemon /var/lib/fairlead-daemon /etc/fairlead 2>/dev/null || true"),
    ).toBe("");
    expect(await node.containers()).toEqual([]);
  });
});
