import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { describeWithDocker } from "../support/docker.ts";
import { Installation } from "../support/installation.ts";
import type { Machine } from "../support/machine.ts";
import { waitFor } from "../support/wait-for.ts";

const SOON_MS = 60_000;

/** The end of projects whose nodes are at work, with a real daemon and a real engine. */
describeWithDocker("deleting a project", () => {
  let installation: Installation;
  let machine: Machine;
  let machines = 0;

  beforeAll(async () => {
    installation = await Installation.start();
  });
  beforeEach(async () => {
    machines += 1;
    await installation.useNewProject();
    machine = await installation.addMachine(`box${machines}`);
    machine.startDaemon();
    await machine.untilActive();
  });
  afterAll(() => installation?.remove());

  const status = async (path: string, method = "GET"): Promise<number> =>
    (await installation.call(method, path)).status;
  const project = (): string => `/v1/projects/${installation.projectId}`;
  const remove = async (): Promise<void> => expect(await status(`${project()}?confirmName=Drill`, "DELETE")).toBe(200);
  const untilGone = async (): Promise<void> => {
    await waitFor("the project to be gone", SOON_MS, async () => (await status(project())) === 404);
    expect(await status(`/v1/nodes/${machine.nodeId}`)).toBe(404);
  };
  const untilDraining = (): Promise<boolean> =>
    waitFor("the node to drain", SOON_MS, async () => (await machine.node()).status === "draining");

  test("rejects new calls immediately and lets running ones finish", async () => {
    const stream = await machine.openStream();
    await remove();
    await expect(machine.ask()).rejects.toThrow(/^401 /);
    await untilDraining();
    expect(await (await installation.call("GET", project())).json()).toHaveProperty("deletingSince");
    const { framedAsWhole, events } = await stream.end();
    expect(framedAsWhole).toBe(true);
    expect(events.at(-1)).toBe("data: [DONE]");
    await untilGone();
  });

  test("continues after the server is killed with kill -9 in the middle of it", async () => {
    await machine.openStream();
    await remove();
    await untilDraining();
    await installation.server.kill();
    await installation.startServer();
    await untilGone();
    await expect(machine.ask()).rejects.toThrow(/^401 /);
  });
});
