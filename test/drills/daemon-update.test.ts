import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Node } from "@fairlead/protocol/resources";
import { afterAll, beforeAll, expect, test } from "vitest";
import { DaemonBuilds, installDaemon } from "../support/daemon-builds.ts";
import { describeWithDocker } from "../support/docker.ts";
import { Installation } from "../support/installation.ts";
import { ANSWER, type Machine } from "../support/machine.ts";
import { waitFor } from "../support/wait-for.ts";

const run = promisify(execFile);
const CLI = new URL("../../packages/cli/bin/fairlead.js", import.meta.url).pathname;
const SUPERVISOR = new URL("../support/supervisor.sh", import.meta.url).pathname;
const TRIAL_SECONDS = "20";
const UPDATE_MS = 120_000;
/** Of no release; none is part of another. */
const FIRST = "71.0.1-first";
const NEXT = "71.0.2-next";
const UNREADABLE = "71.0.3-unreadable";
const BROKEN = "71.0.4-broken";
const LOST = "71.0.5-lost";

/** Real builds, real downloads, a real engine; in place of systemd a shell script that does what the unit says. */
describeWithDocker("a daemon that updates itself", () => {
  let folder: string;
  let root: string;
  let builds: DaemonBuilds;
  let installation: Installation;
  let machine: Machine;
  let engine: { readonly id: string; readonly startedAt: string };

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "fairlead-update-"));
    root = join(folder, "opt");
    builds = await DaemonBuilds.make(join(folder, "builds"), FIRST);
    builds.add(NEXT);
    builds.add(UNREADABLE, "cannot read the state");
    builds.add(BROKEN, "does not start");
    builds.add(LOST, "never reaches the control plane");
    installDaemon(builds, FIRST, root);
    installation = await Installation.start("127.0.0.1", { builds: { dir: builds.out } });
    machine = await installation.addMachine("Updated", { enter: ["/bin/sh", SUPERVISOR, root, TRIAL_SECONDS] });
    machine.startDaemon();
    await machine.untilActive();
    expect(await machine.untilItAnswers()).toBe(ANSWER);
    const [id = ""] = await machine.running();
    engine = { id, startedAt: await machine.startedAt(id) };
  });
  afterAll(async () => {
    await installation?.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  async function ask(version: string): Promise<void> {
    const response = await installation.call("PUT", `/v1/nodes/${machine.nodeId}/daemon-version`, { version });
    if (!response.ok) throw new Error(await response.text());
  }

  /** Waits until the daemon says how the update ended. */
  async function untilEnded(version: string, since: number): Promise<Node> {
    return waitFor(`the update to ${version} to end`, UPDATE_MS, async () => {
      const node = await machine.node();
      const { daemonUpdate: update } = node;
      const ended = ["done", "rolled_back", "refused"].includes(update?.state ?? "");
      return update?.wanted === version && ended && Date.parse(update.since) >= since && node;
    }).catch(async (error: unknown) => {
      throw new Error(`${JSON.stringify((await machine.node()).daemonUpdate)}\n${machine.daemon.lastLines()}`, {
        cause: error,
      });
    });
  }

  /** Nothing about the engine is another, and it answers. */
  async function expectSameEngine(): Promise<void> {
    expect(await machine.untilItAnswers()).toBe(ANSWER);
    expect(await machine.running()).toEqual([engine.id]);
    expect(await machine.startedAt(engine.id)).toBe(engine.startedAt);
  }

  const current = (): string => readlinkSync(join(root, "current"));
  const saidOf = async (kind: string): Promise<string | undefined> =>
    (await machine.events()).find((event) => event.kind === kind)?.message;

  test("runs the requested version, keeps the previous one, and does not affect its engine", async () => {
    const since = Date.now();
    await ask(NEXT);
    const node = await untilEnded(NEXT, since);
    expect(node).toMatchObject({ daemonVersion: NEXT, desiredDaemonVersion: NEXT, daemonUpdate: { state: "done" } });
    expect(current()).toBe(`versions/${NEXT}`);
    expect(machine.daemon.log).toContain("supervisor: the daemon ended with 6");
    await waitFor("what is not needed to be gone", UPDATE_MS, async () => !existsSync(join(root, "downloads")));
    expect(readdirSync(join(root, "versions")).toSorted()).toEqual([FIRST, NEXT]);
    expect(existsSync(join(root, "trial"))).toBe(false);
    await expectSameEngine();
    expect(await saidOf("daemon_updated")).toContain(`updated the daemon from version ${FIRST}`);
  });

  test("rejects a version that cannot read its state, without a restart", async () => {
    const ends = machine.daemon.log.split("the daemon ended").length;
    const since = Date.now();
    await ask(UNREADABLE);
    const node = await untilEnded(UNREADABLE, since);
    expect(node).toMatchObject({
      daemonVersion: NEXT,
      daemonUpdate: { state: "refused", message: expect.stringContaining("cannot read the state") as string },
      conditions: expect.arrayContaining([expect.objectContaining({ type: "update", reason: "refused" })]) as unknown,
    });
    expect(machine.daemon.log.split("the daemon ended")).toHaveLength(ends);
    await expectSameEngine();
  });

  test("rolls back a version that does not start, reports why, and retries it only when requested again", async () => {
    for (const round of ["first", "asked anew"]) {
      const since = Date.now();
      await ask(BROKEN);
      const node = await untilEnded(BROKEN, since);
      expect(node.daemonUpdate, round).toMatchObject({
        state: "rolled_back",
        message: "it failed 3 times during its trial",
      });
      await waitFor("the old version", UPDATE_MS, async () => (await machine.node()).daemonVersion === NEXT);
      expect(current()).toBe(`versions/${NEXT}`);
      await expectSameEngine();
    }
    expect(await saidOf("daemon_rolled_back")).toContain(BROKEN);
  });

  test("rolls back a version that runs but never reaches the control plane", async () => {
    const since = Date.now();
    await ask(LOST);
    const node = await untilEnded(LOST, since);
    expect(node).toMatchObject({
      daemonVersion: NEXT,
      daemonUpdate: { state: "rolled_back", message: `within ${TRIAL_SECONDS} s it did not reach the control plane` },
    });
    expect(current()).toBe(`versions/${NEXT}`);
    await expectSameEngine();
  });

  test("can be updated from version to version with the CLI, which stops at a failed update", async () => {
    const update = (version: string) =>
      run(process.execPath, [CLI, "node", "update-daemon", "--all", "--to", version], {
        env: { ...process.env, ...installation.environment },
      });
    await expect(update(UNREADABLE)).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining("cannot read the state") as string,
    });
    const { stdout, stderr } = await update(FIRST);
    expect(stdout).toMatch(new RegExp(`${NEXT} +${FIRST} +updated`));
    expect(stderr).toContain(`${FIRST}, trial`);
    expect((await update(FIRST)).stdout).toMatch(new RegExp(`${FIRST} +${FIRST} +already`));
    await expectSameEngine();
  });

  test("does nothing if no version is requested, and has kept its engine's container through all updates", async () => {
    const response = await installation.call("PUT", `/v1/nodes/${machine.nodeId}/daemon-version`, { version: null });
    expect(response.status).toBe(200);
    await waitFor("the node to be asked for nothing", UPDATE_MS, async () => {
      const { desiredDaemonVersion, conditions } = await machine.node();
      return (
        desiredDaemonVersion === null && conditions.every(({ type, status }) => type !== "update" || status === "ok")
      );
    });
    expect(await machine.containers()).toEqual([engine.id]);
  });
});
