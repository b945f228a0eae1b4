import { afterAll, beforeAll, expect, test } from "vitest";
import { describeWithDocker } from "../support/docker.ts";
import { Installation } from "../support/installation.ts";
import { ANSWER, type Machine } from "../support/machine.ts";
import { waitFor } from "../support/wait-for.ts";

const UPDATE_MS = 60_000;
const ARGS = ["--alias", "tinychat-6m", "-np", "2", "-c", "4096", "-t", "1", "--cache-ram", "0"];

/** What an operator sees of one node, from its first engine to its end, on real Docker. */
describeWithDocker("a node that receives updates", () => {
  let installation: Installation;
  let machine: Machine;
  beforeAll(async () => {
    installation = await Installation.start();
    machine = await installation.addMachine("Updated");
    machine.startDaemon();
    await machine.untilActive();
  });
  afterAll(() => installation?.remove());

  async function configure(engineConfig: object): Promise<void> {
    const body = { node: { engineConfig: { preset: "fairlead-demo", ...engineConfig } } };
    const response = await installation.call("PATCH", `/v1/nodes/${machine.nodeId}`, body);
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  }

  const untilSaid = (text: string): Promise<unknown> =>
    waitFor(`the node to say "${text}"`, UPDATE_MS, async () => (await machine.node()).statusMessage.includes(text));

  async function untilReplaced(before: readonly string[]): Promise<void> {
    await waitFor("the new engine alone", UPDATE_MS, async () => {
      const [now = "", ...others] = await machine.containers();
      return others.length === 0 && !before.includes(now);
    });
    expect(await machine.untilItAnswers()).toBe(ANSWER);
  }

  test("reports the state of its machine", async () => {
    await waitFor("the conditions", UPDATE_MS, async () => (await machine.node()).conditions.length >= 4);
    const { conditions } = await machine.node();
    const found = Object.fromEntries(conditions.map(({ type, status }) => [type, status]));
    expect(found).toMatchObject({ clock: "ok", docker: "ok", gpu: "ok" });
    for (const { since } of conditions) expect(Date.parse(since)).toBeGreaterThan(0);
  });

  test("keeps the old engine serving when the new one cannot start, and reports why it rolled back", async () => {
    const before = await machine.running();
    let failed = 0;
    const asking = new AbortController();
    const asked = (async () => {
      while (!asking.signal.aborted) if ((await machine.ask().catch(() => "")) !== ANSWER) failed += 1;
    })();
    await configure({ args: ["--no-such-argument"] });
    await untilSaid("failed and was undone");
    asking.abort();
    await asked;
    expect(failed).toBe(0);
    expect(await machine.running()).toEqual(before);
    expect(await machine.node()).toMatchObject({ status: "active" });
    const told = (await machine.events()).filter(({ kind }) => kind === "update_rolled_back");
    expect(told).toHaveLength(1);
    expect(told[0]?.message).toMatch(/rolled back to fairlead-\S+: exit code 1/);
  });

  test("stays rolled back when its daemon is killed, without another attempt", async () => {
    const before = await machine.running();
    await machine.daemon.kill();
    machine.startDaemon();
    await machine.untilItLogs("link established");
    await waitFor("the report", UPDATE_MS, async () =>
      (await machine.node()).statusMessage.includes("failed and was undone"),
    );
    expect(await machine.running()).toEqual(before);
  });

  test("applies the next config that works, and nothing of the old ones remains", async () => {
    const before = await machine.running();
    await configure({ args: ARGS });
    await untilReplaced(before);
    await untilSaid("Engine is ready.");
  });

  test("lets a running stream finish before it replaces the engine (stop-first)", async () => {
    const first = await machine.running();
    await configure({ args: ARGS, update: "stop-first", env: { STEP: "1" } });
    await untilReplaced(first);
    const second = await machine.running();
    const stream = await machine.openStream();
    await configure({ args: ARGS, update: "stop-first", env: { STEP: "2" } });
    const { framedAsWhole, events } = await stream.end();
    expect(framedAsWhole).toBe(true);
    expect(events.at(-1)).toBe("data: [DONE]");
    await untilReplaced(second);
  });

  test("is deleted: its daemon removes the engine and exits", async () => {
    const response = await installation.call("DELETE", `/v1/nodes/${machine.nodeId}`);
    expect(response.status).toBe(200);
    await waitFor("the daemon to end", UPDATE_MS, async () => !machine.daemon.running);
    expect(await machine.containers()).toEqual([]);
  });
});
