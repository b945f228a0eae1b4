import { afterAll, beforeAll, expect, test } from "vitest";
import { ANSWER } from "../support/machine.ts";
import { waitFor } from "../support/wait-for.ts";
import type { BoxedNode, EngineRun } from "./stage/boxed-node.ts";
import { describeOnSystemd, Field } from "./stage/field.ts";

const SOON_MS = 60_000;
const WATCHDOG_SECONDS = 8;

/** What systemd does to the daemon, and what becomes of the engine meanwhile: a real node on Debian 12. */
describeOnSystemd("the service fairlead-daemon", () => {
  let field: Field;
  let node: BoxedNode;
  let engine: EngineRun;

  beforeAll(async () => {
    field = await Field.create();
    node = await field.addNode("bookworm");
    await node.join();
    engine = await node.engine();
  });

  afterAll(() => field?.remove());

  test("can be stopped and started without restarting the engine", async () => {
    await node.box.run("systemctl stop fairlead-daemon");
    expect(await node.property("ExecMainStatus")).toBe("0");
    await waitFor("the platform to miss it", SOON_MS, async () => (await node.machine.node()).status === "unreachable");
    expect(await node.engine()).toEqual(engine);
    await node.box.run("systemctl start fairlead-daemon");
    await node.untilActive();
    expect(await node.machine.untilItAnswers()).toBe(ANSWER);
    expect(await node.engine()).toEqual(engine);
  });

  test("can be restarted without restarting the engine", async () => {
    const pid = await node.mainPid();
    await node.box.run("systemctl restart fairlead-daemon");
    expect(await node.mainPid()).not.toBe(pid);
    expect(await node.machine.untilItAnswers()).toBe(ANSWER);
    expect(await node.engine()).toEqual(engine);
  });

  test("restarts by itself after kill -9, and the engine keeps running", async () => {
    const pid = await node.mainPid();
    await node.box.run(`kill -9 ${pid}`);
    await node.untilAnotherPid(pid);
    expect(await node.machine.untilItAnswers()).toBe(ANSWER);
    expect(await node.engine()).toEqual(engine);
  });

  test("is killed by the watchdog if its event loop hangs, and the next daemon adopts the running engine", async () => {
    await node.box.run(`mkdir -p /run/systemd/system/fairlead-daemon.service.d
      printf '[Service]\\nWatchdogSec=${WATCHDOG_SECONDS}\\n' >/run/systemd/system/fairlead-daemon.service.d/watchdog.conf
      systemctl daemon-reload && systemctl restart fairlead-daemon`);
    await node.untilActive();
    const pid = await node.mainPid();
    await node.blockEventLoop();
    await node.untilAnotherPid(pid);
    expect(await node.journal(200)).toContain("Watchdog timeout");
    expect(await node.machine.untilItAnswers()).toBe(ANSWER);
    expect(await node.engine()).toEqual(engine);
  });

  test("runs the engine again after a reboot, and the node is active", async () => {
    await node.box.reboot();
    await node.untilActive();
    expect(await node.machine.untilItAnswers()).toBe(ANSWER);
    expect((await node.engine()).container).toBe(engine.container);
  });

  test("starts the engine from disk if it boots while the platform is down, and connects later", async () => {
    await field.installation.server.kill();
    await node.box.cutPower();
    await node.untilEngineIsHealthy();
    const run = await node.engine();
    expect(await node.property("ActiveState")).toBe("active");
    await waitFor("systemd to be told", SOON_MS, async () =>
      (await node.property("StatusText")).startsWith("Connecting to the platform"),
    );
    await field.installation.startServer();
    await node.untilActive();
    expect(await node.machine.untilItAnswers()).toBe(ANSWER);
    expect(await node.engine()).toEqual(run);
  });

  test("removes the engine when its node is deleted, and stays down, even after a reboot", async () => {
    const deleted = await field.installation.call("DELETE", `/v1/nodes/${node.machine.nodeId}`);
    expect(deleted.status).toBe(200);
    await node.untilRefused();
    expect(await node.containers()).toEqual([]);
    await node.box.reboot();
    await node.untilRefused();
    expect(await node.property("NRestarts")).toBe("0");
  });
});
