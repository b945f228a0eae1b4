import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { describeWithDocker, ensureDemoImage } from "../support/docker.ts";
import { Installation } from "../support/installation.ts";
import { ANSWER, type Machine } from "../support/machine.ts";
import { waitFor } from "../support/wait-for.ts";

const SOON_MS = 60_000;
const anything = z.unknown();

/** `kill -9` of every part on real ones: the control plane, the daemon and the engine, each in processes of their own. */
describeWithDocker("kill -9", () => {
  let installation: Installation;
  let machine: Machine;
  let engine = "";

  beforeAll(async () => {
    await ensureDemoImage();
    installation = await Installation.start();
    machine = await installation.addMachine("box");
    machine.startDaemon();
    await machine.untilActive();
    [engine = ""] = await machine.containers();
  });

  afterAll(() => installation?.remove());

  const expectTheOneEngine = async (): Promise<void> => expect(await machine.containers()).toEqual([engine]);

  test("of the engine: its stream ends with an error, it restarts in the same container, and calls succeed again", async () => {
    const stream = await machine.openStream();
    const before = await machine.startedAt(engine);
    await machine.docker("kill", "--signal", "KILL", engine);
    expectErrorInBand((await stream.end()).events, stream.text);
    expect(await machine.untilItAnswers()).toBe(ANSWER);
    await expectTheOneEngine();
    expect(await machine.startedAt(engine)).not.toBe(before);
  });

  test("of the daemon: its stream ends with an error, and after a restart it adopts the engine, which kept running", async () => {
    const before = await machine.startedAt(engine);
    const stream = await machine.openStream();
    await machine.daemon.kill();
    expectErrorInBand((await stream.end()).events, stream.text);
    machine.startDaemon();
    expect(await machine.untilItAnswers()).toBe(ANSWER);
    await expectTheOneEngine();
    expect(await machine.startedAt(engine)).toBe(before);
  });

  describe("of the control plane", () => {
    test("cuts streams off visibly, loses nothing that was acknowledged, and the daemon reconnects", async () => {
      const before = await machine.startedAt(engine);
      const stream = await machine.openStream();
      const acknowledged = await createUntilKilled(installation);
      const { framedAsWhole, events } = await stream.end();
      expect(framedAsWhole).toBe(false);
      expect(stream.text).not.toContain("[DONE]");
      expect(events.some((event) => event.includes('"error"'))).toBe(false);
      expect(await machine.startedAt(engine)).toBe(before);

      await installation.startServer();
      expect(acknowledged.length).toBeGreaterThan(1);
      for (const row of acknowledged) await row.find(installation);
      expect(await machine.untilItAnswers()).toBe(ANSWER);
      await expectTheOneEngine();
      expect(await machine.startedAt(engine)).toBe(before);
    });

    test("lets a daemon that restarts meanwhile keep its running engine", async () => {
      const before = await machine.startedAt(engine);
      await installation.server.kill();
      await machine.daemon.kill();
      machine.startDaemon();
      await machine.untilItLogs("could not open the link");
      await expectTheOneEngine();
      expect(await machine.startedAt(engine)).toBe(before);
    });

    test("lets a daemon meanwhile restart a killed engine and recreate a removed one from the state on its disk", async () => {
      await machine.docker("kill", "--signal", "KILL", engine);
      await waitFor("the engine to run again", SOON_MS, async () => (await machine.running()).includes(engine));
      await machine.daemon.kill();
      await machine.docker("rm", "-f", engine);
      machine.startDaemon();
      [engine = ""] = await waitFor("a new engine", SOON_MS, async () => {
        const running = await machine.running();
        return running.length > 0 && running;
      });
      await installation.startServer();
      expect(await machine.untilItAnswers()).toBe(ANSWER);
      await expectTheOneEngine();
      await machine.untilActive();
    });
  });
});

/** The stream says in the client's own dialect that it broke off; nothing comes after that, and nothing says that all is well. */
function expectErrorInBand(events: readonly string[], text: string): void {
  const last: unknown = JSON.parse(events.at(-1)?.slice("data: ".length) ?? "null");
  expect(last).toMatchObject({ error: { code: "upstream_failed", type: "upstream_error" } });
  expect(text).not.toContain("[DONE]");
  expect(text).not.toMatch(/"finish_reason":"/);
}

interface Row {
  /** @throws where it is gone. */
  find(installation: Installation): Promise<void>;
}

/** Creates one thing after another until the control plane is killed under it. @returns what was acknowledged. */
async function createUntilKilled(installation: Installation): Promise<Row[]> {
  const acknowledged: Row[] = [];
  const found = (path: string): Row => ({
    find: async ({ api }) => expect(await api.find(path, anything), path).not.toBeNull(),
  });
  const create = async (): Promise<void> => {
    for (let count = 1; ; count++) {
      const projectId = await installation.createProject(`Drill ${count}`);
      acknowledged.push(found(`/v1/projects/${projectId}`));
      const { keyValue } = await installation.createKey(projectId);
      acknowledged.push({
        find: async ({ modelsUrl }) => {
          const answer = await fetch(`${modelsUrl}/v1/models`, { headers: { authorization: `Bearer ${keyValue}` } });
          expect(answer.status, "a key").toBe(200);
        },
      });
      const node = await installation.createNode(`Drill ${count}`, { engineConfig: { preset: "fairlead-demo" } });
      acknowledged.push(found(`/v1/nodes/${node.id}`));
    }
  };
  const broken = create().catch(() => null);
  await waitFor("a few rows", SOON_MS, async () => acknowledged.length >= 5);
  await installation.server.kill();
  await broken;
  return acknowledged;
}
