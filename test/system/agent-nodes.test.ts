import { afterAll, beforeAll, expect, test } from "vitest";
import { AgentCaller } from "../support/agent-calls.ts";
import { describeWithDocker, docker, ensureDemoAgentImage } from "../support/docker.ts";
import { Installation } from "../support/installation.ts";
import type { Machine } from "../support/machine.ts";
import { waitFor } from "../support/wait-for.ts";

const SOON_MS = 90_000;

/** An agent through what becomes of its node, on real Docker: two machines, each with an engine. */
describeWithDocker("an agent whose node", () => {
  let installation: Installation;
  let here: Machine;
  let there: Machine;
  let agent: AgentCaller;

  beforeAll(async () => {
    await ensureDemoAgentImage();
    installation = await Installation.start();
    here = await installation.addMachine("Here");
    there = await installation.addMachine("There");
    here.startDaemon();
    there.startDaemon();
    await Promise.all([here.untilActive(), there.untilActive()]);
    const config = { health: { intervalSeconds: 1 } };
    agent = await AgentCaller.create(installation, here, { guest: "fairlead-demo-agent", config });
    await agent.want("POST", ":start", {});
    await agent.until("running");
  });
  afterAll(() => installation?.remove());

  const verb = (machine: Machine, name: string): Promise<Response> =>
    installation.call("POST", `/v1/nodes/${machine.nodeId}:${name}`, {});
  const untilStatus = (machine: Machine, status: string): Promise<unknown> =>
    waitFor(`the node to be ${status}`, SOON_MS, async () => (await machine.node()).status === status);
  const messageOf = async (): Promise<string> => (await agent.get()).runtime.message;
  const move = (machine: Machine, more: object = {}) =>
    agent.call("PATCH", "", { runtimeProvider: `node:${machine.nodeId}`, ...more });

  /** Containers of it that run, whichever node's they are. */
  async function running(): Promise<string[]> {
    const ids = await docker("ps", "-q", "--no-trunc", "--filter", `label=dev.fairlead.workload=${agent.id}`);
    return ids.split("\n").filter(Boolean);
  }

  /** The most that ran at once while the work was done. */
  async function mostAtOnce(work: () => Promise<unknown>): Promise<number> {
    let most = 0;
    const done = new AbortController();
    const counting = (async () => {
      while (!done.signal.aborted) most = Math.max(most, (await running()).length);
    })();
    await work().finally(() => done.abort());
    await counting;
    return most;
  }

  test("is being drained stops first, while calls to the node's engine still run", async () => {
    const stream = await here.openStream();
    await verb(here, "drain");
    await agent.until("stopped");
    expect(await messageOf()).toMatch(/^Node Here is draining/);
    expect(await running()).toEqual([]);
    expect(await here.node()).toMatchObject({ status: "draining", workloads: [{ name: "engine", ready: true }] });
    await stream.closed;
    await untilStatus(here, "drained");
    expect(await messageOf()).toMatch(/^Node Here is drained/);
  });

  test("is resumed runs again", async () => {
    await verb(here, "resume");
    await agent.until("running");
    await untilStatus(here, "active");
    expect(await running()).toHaveLength(1);
  });

  test("changes runs on the new node, and never on both", async () => {
    const most = await mostAtOnce(async () => {
      expect((await move(there)).status).toBe(200);
      await waitFor("the other node", SOON_MS, async () => {
        const { lifecycleState, runtime } = await agent.get();
        return lifecycleState === "running" && runtime["nodeId"] === there.nodeId;
      });
    });
    expect(most).toBe(1);
    expect(await agent.containers(there)).toHaveLength(1);
    expect((await there.node()).workloads.map(({ name }) => name)).toEqual([
      "engine",
      `agent-${agent.id.slice("agt_".length)}`,
    ]);
  });

  test("does not respond is reported as such, is not moved, and returns with the same container", async () => {
    const before = await running();
    await there.daemon.kill();
    await untilStatus(there, "unreachable");
    await agent.until("starting");
    expect(await messageOf()).toMatch(
      /^Node There has not responded since \S+\. The agent may still be running there\.$/,
    );
    expect(await move(here)).toMatchObject({ status: 409 });
    expect(await running()).toEqual(before);
    there.startDaemon();
    await agent.until("running");
    expect(await running()).toEqual(before);
  });

  test("does not respond can be moved by force, and its old container stops when the node returns", async () => {
    const [left = ""] = await running();
    await there.daemon.kill();
    await untilStatus(there, "unreachable");
    expect((await move(here, { force: true })).status).toBe(200);
    await waitFor("the other node", SOON_MS, async () => {
      const { lifecycleState, runtime } = await agent.get();
      return lifecycleState === "running" && runtime["nodeId"] === here.nodeId;
    });
    expect(await running()).toContain(left);
    there.startDaemon();
    await waitFor("the old one's end", SOON_MS, async () => !(await running()).includes(left));
    expect(await running()).toHaveLength(1);
    await there.untilActive();
    expect((await there.node()).workloads.map(({ name }) => name)).toEqual(["engine"]);
  });

  test("is deleted fails, reports why, and runs again on another node", async () => {
    expect((await installation.call("DELETE", `/v1/nodes/${here.nodeId}`)).status).toBe(200);
    await agent.until("failed");
    expect(await messageOf()).toContain("Its node was deleted");
    await waitFor("its container's end", SOON_MS, async () => (await running()).length === 0);
    expect((await move(there)).status).toBe(200);
    await agent.until("running");
    expect(await agent.containers(there)).toHaveLength(1);
  });
});
