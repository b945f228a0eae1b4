import { statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { describeWithDocker } from "../support/docker.ts";
import { Installation } from "../support/installation.ts";
import { ANSWER, type Machine } from "../support/machine.ts";
import { waitFor } from "../support/wait-for.ts";

const LIFE_MS = 90_000;

/** What operators do with a node, on real Docker. */
describeWithDocker("a node, from start to deletion", () => {
  let installation: Installation;
  let machine: Machine;
  beforeAll(async () => {
    installation = await Installation.start();
    machine = await installation.addMachine("Living");
    machine.startDaemon();
    await machine.untilActive();
    expect(await machine.untilItAnswers()).toBe(ANSWER);
  });
  afterAll(() => installation?.remove());

  async function verb(name: string, body: object = {}): Promise<unknown> {
    const response = await installation.call("POST", `/v1/nodes/${machine.nodeId}:${name}`, body);
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
    return response.json();
  }

  const untilStatus = (status: string): Promise<unknown> =>
    waitFor(`the node to be ${status}`, LIFE_MS, async () => (await machine.node()).status === status);

  /** Reads what the engine prints, until the test leaves. */
  async function follow(): Promise<{ text: string; leave(): void }> {
    const response = await installation.call("GET", `/v1/nodes/${machine.nodeId}/logs?follow=true&tail=5`);
    expect(response.status).toBe(200);
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    const log = { text: "", leave: (): void => void reader?.cancel().catch(() => undefined) };
    const read = async (): Promise<void> => {
      for (let piece = await reader?.read(); piece?.done === false; piece = await reader?.read())
        log.text += piece.value;
    };
    void read().catch(() => undefined);
    return log;
  }

  test("shows what runs, what is desired, and since when", async () => {
    const node = await machine.node();
    const [engine] = node.workloads;
    expect(engine).toMatchObject({ name: "engine", ready: true, upToDate: true, desiredGeneration: 1, generation: 1 });
    expect(engine?.imageDigest).toMatch(/^sha256:/);
    expect(Date.parse(engine?.startedAt ?? "")).toBeGreaterThan(0);
    expect(Date.parse(node.statusSince)).toBeGreaterThan(0);
    expect(node.lastSeenAt).not.toBeNull();
    expect(node.daemonVersion).toMatch(/^\d/);
  });

  test("restarts its engine without a failed call, and its log continues from the old engine to the new one", async () => {
    const [before = ""] = await machine.running();
    const log = await follow();
    await waitFor("the log", LIFE_MS, async () => log.text !== "");
    const old = log.text.length;
    let failed = 0;
    const asking = new AbortController();
    const asked = (async () => {
      while (!asking.signal.aborted) if ((await machine.ask().catch(() => "")) !== ANSWER) failed += 1;
    })();
    expect(await verb("restart-workload")).toMatchObject({ id: machine.nodeId });
    await waitFor("the new engine alone", LIFE_MS, async () => {
      const [now = "", ...others] = await machine.containers();
      return others.length === 0 && now !== before;
    });
    asking.abort();
    await asked;
    expect(failed).toBe(0);
    expect((await machine.node()).workloads).toMatchObject([{ upToDate: true, desiredGeneration: 2 }]);
    await waitFor("lines of the new engine", LIFE_MS, async () => log.text.length > old);
    log.leave();
    const events = await machine.events();
    const said = events.map(({ message }) => message).join("\n");
    expect(said).toContain("admin@drill.local restarted the engine.");
    expect(said).toMatch(/stopped fairlead-\S+: replaced by another container of the workload/);
    expect(said).toMatch(/fairlead-\S+ is ready/);
  });

  test("returns as many of the last log lines as requested", async () => {
    const response = await installation.call("GET", `/v1/nodes/${machine.nodeId}/logs?tail=2`);
    expect((await response.text()).split("\n").filter(Boolean)).toHaveLength(2);
  });

  test("drains: a running stream finishes, no new call is accepted, then nothing runs, even if the server is killed", async () => {
    const stream = await machine.openStream();
    expect(await verb("drain")).toMatchObject({ status: "draining" });
    expect(await verb("drain")).toMatchObject({ status: "draining" });
    await expect(machine.ask()).rejects.toThrow(/no_running_engine|model_not_found|503|502|404/);
    expect(await machine.running()).toHaveLength(1);
    const { framedAsWhole, events } = await stream.end();
    expect([framedAsWhole, events.at(-1)]).toEqual([true, "data: [DONE]"]);
    await untilStatus("drained");
    await installation.server.kill();
    await installation.startServer();
    await waitFor("no container", LIFE_MS, async () => (await machine.containers()).length === 0);
    expect(await machine.node()).toMatchObject({ status: "drained", workloads: [] });
    const logs = await installation.call("GET", `/v1/nodes/${machine.nodeId}/logs`);
    expect(logs.status).toBe(503);
  });

  test("responds again after it is resumed", async () => {
    expect(await verb("resume")).toMatchObject({ status: "starting" });
    await untilStatus("active");
    expect(await machine.untilItAnswers()).toBe(ANSWER);
  });

  test("continues draining after the server is killed in the middle", async () => {
    const stream = await machine.openStream();
    await verb("drain", { timeoutSeconds: 3600 });
    await installation.server.kill();
    await stream.closed;
    await installation.startServer();
    await untilStatus("drained");
    await verb("resume");
    await untilStatus("active");
    expect(await machine.untilItAnswers()).toBe(ANSWER);
  });

  test("has a history that explains why its engine restarted", async () => {
    const [container = ""] = await machine.running();
    await machine.docker("kill", "--signal", "KILL", container);
    await waitFor("another run", LIFE_MS, async () => {
      const [engine] = (await machine.node()).workloads;
      return engine?.restartCount === 1 && engine.ready;
    });
    const path = `/v1/nodes/${machine.nodeId}/events?kind=workload_exited,workload_started&pageSize=2`;
    const { events } = (await (await installation.call("GET", path)).json()) as { events: { message: string }[] };
    expect(events.map(({ message }) => message)).toEqual([
      expect.stringMatching(/^started fairlead-\S+ again; the last run exited: killed \(signal 9\)$/),
      expect.stringMatching(/^fairlead-\S+ exited: killed \(signal 9\); restarting$/),
    ]);
  });

  test("whose daemon is stopped is unreachable immediately, its engine keeps running, and calls report why they fail", async () => {
    await machine.daemon.stop();
    expect(await machine.node()).toMatchObject({
      status: "unreachable",
      statusMessage: expect.stringContaining("systemctl start fairlead-daemon"),
    });
    expect(await machine.running()).toHaveLength(1);
    await expect(machine.ask()).rejects.toThrow(
      /Node `living` has been unreachable since .* was stopped.*no_running_engine/,
    );
    truncateSync(join(machine.stateDir, "identity.json"), 20);
    machine.startDaemon();
    await machine.untilActive();
    expect(await machine.untilItAnswers()).toBe(ANSWER);
    const restored = "identity.json was damaged or missing and has been restored from its copy";
    expect((await machine.events()).map(({ message }) => message)).toContain(restored);
    expect(statSync(join(machine.stateDir, "identity.json")).size).toBeGreaterThan(20);
  });

  test("answers a call made right after a server restart, once its daemon is back", async () => {
    // Without a word, and long before its node would be taken for lost.
    await machine.daemon.kill();
    await installation.server.kill();
    await installation.startServer();
    const asked = machine.ask();
    machine.startDaemon();
    expect(await asked).toBe(ANSWER);
  });

  test("loses its identity when it is deleted, and its daemon removes everything that ran", async () => {
    expect((await installation.call("DELETE", `/v1/nodes/${machine.nodeId}`)).status).toBe(200);
    await waitFor("no container", LIFE_MS, async () => (await machine.containers()).length === 0);
    await waitFor("the daemon's end", LIFE_MS, async () => !machine.daemon.running);
    expect((await installation.call("GET", `/v1/nodes/${machine.nodeId}`)).status).toBe(404);
  });
});
