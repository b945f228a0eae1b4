import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { AgentCaller } from "../support/agent-calls.ts";
import type { Machine } from "../support/machine.ts";
import { waitFor } from "../support/wait-for.ts";
import { agentChange, answerOf, mostAtOnce, Run } from "./stage/agent-runs.ts";
import { DockerEvents } from "./stage/docker-events.ts";
import { EVERY_DRILL } from "./stage/every-drill.ts";
import { expectSettled } from "./stage/settled.ts";
import { configure, describeOnStage, Stage } from "./stage/stage.ts";

const DAEMON = new URL("../../packages/daemon/bin/fairlead-daemon.js", import.meta.url).pathname;
const SOON_MS = 60_000;
const TOKEN_FILE = "/run/secrets/fairlead-token";

describeOnStage("an agent beside an engine", () => {
  let stage: Stage;
  let machine: Machine;
  let agent: AgentCaller;
  let serves = "v1";

  beforeAll(async () => {
    stage = await Stage.create();
    machine = await stage.addMachine("Host", stage.engineConfig(await stage.image("v1")));
    machine.startDaemon();
    await expectSettled(stage, machine, { serves });
    agent = await stage.addAgent(machine, await stage.image("a1"));
    await agent.want("POST", ":start", {});
    await agent.until("running");
  });
  afterAll(() => stage?.remove());

  const engineRun = (): Promise<Run> => Run.ofEngine(machine, agent);
  const agentRun = (): Promise<Run> => Run.ofAgent(machine, agent);
  const token = async (): Promise<string> =>
    machine.docker("exec", (await agentRun()).container, "/bin/busybox", "cat", TOKEN_FILE);
  const settled = (): Promise<void> => expectSettled(stage, machine, { serves, agents: 1 });
  const updateAgent = (guest: string): Promise<unknown> => agent.want("PATCH", "", { guest });

  async function untilItAnswers(version: string): Promise<void> {
    await waitFor(`the agent to be ${version}`, SOON_MS, async () => (await answerOf(agent)) === version);
  }

  test("runs in a separate container, and its token exists before it starts", async () => {
    await settled();
    expect(await agent.get()).toMatchObject({ runtime: { restartCount: 0, lastExit: null } });
    expect(await answerOf(agent)).toBe("a1");
    expect((await token()).split(".")).toHaveLength(3);
  });

  test("restarts after a crash without affecting the engine, and vice versa", async () => {
    const engine = await engineRun();
    const { container } = await agentRun();
    await machine.docker("kill", "--signal", "KILL", container);
    await waitFor("the agent to run again", SOON_MS, async () => (await machine.running()).includes(container));
    await settled();
    await engine.expectStill();

    const run = await agentRun();
    await machine.docker("kill", "--signal", "KILL", engine.container);
    await waitFor("the engine", SOON_MS, async () => (await machine.running()).includes(engine.container));
    await settled();
    await run.expectStill();
  });

  test("is updated without affecting the engine, and vice versa", async () => {
    const engine = await engineRun();
    await updateAgent(await stage.image("a2"));
    await untilItAnswers("a2");
    await settled();
    await engine.expectStill();

    const run = await agentRun();
    await configure(stage.installation, machine, stage.engineConfig(await stage.image("v2")));
    serves = "v2";
    await settled();
    await run.expectStill();
  });

  test("gets its next token in the same file, without a restart", async () => {
    const [run, before] = [await agentRun(), await token()];
    // Any change of what the node is to run may mean a new run of its agents.
    const env = { TURN: "2" };
    await configure(stage.installation, machine, stage.engineConfig(await stage.image("v2"), { env }));
    await waitFor("another token", SOON_MS, async () => (await token()) !== before);
    await settled();
    await run.expectStill();
  });

  test("returns to its old version if an update exits immediately, and the engine is not affected", async () => {
    const engine = await engineRun();
    await updateAgent(await stage.image("broken", "broken"));
    await waitFor("it to tell", SOON_MS, async () =>
      /failed and was undone: exit code 3/.test((await agent.get()).runtime.message),
    );
    await untilItAnswers("a2");
    expect(await agent.get()).toMatchObject({ lifecycleState: "running" });
    await engine.expectStill();
    expect((await machine.node()).status).toBe("active");
    await updateAgent(await stage.image("a2"));
    await settled();
  });

  test("is not affected by an engine update that is rolled back", async () => {
    const run = await agentRun();
    await configure(stage.installation, machine, stage.engineConfig(await stage.image("broken", "broken")));
    const because = /failed and was undone: exit code 3/;
    await expectSettled(stage, machine, { serves, agents: 1, because });
    await run.expectStill();
    await configure(stage.installation, machine, stage.engineConfig(await stage.image("v2")));
    await settled();
  });

  describe("never runs twice, even if the daemon is killed", () => {
    const MOMENTS = ["create", "kill", "die", "start", "destroy"] as const;
    const CHOICE: readonly string[] = ["create", "die", "start"];

    test.each(EVERY_DRILL ? MOMENTS : MOMENTS.filter((moment) => CHOICE.includes(moment)))(
      "in an update when Docker reports a %s event",
      async (moment) => {
        const [engine, before] = [await engineRun(), await agentRun()];
        const to = (await answerOf(agent)) === "a1" ? "a2" : "a1";
        const events = new DockerEvents(stage.host);
        try {
          await updateAgent(await stage.image(to));
          await events.until(moment, SOON_MS, agentChange(agent, moment));
          await machine.daemon.kill();
          machine.startDaemon();
          await untilItAnswers(to);
          await settled();
          expect(mostAtOnce(events.seen, agent, [before.container])).toBe(1);
        } finally {
          events.close();
        }
        await engine.expectStill();
      },
    );
  });

  test("keeps its token if the daemon is killed while the platform is down", async () => {
    const [run, before] = [await agentRun(), await token()];
    await stage.installation.server.kill();
    await machine.daemon.kill();
    machine.startDaemon();
    await machine.untilItLogs("could not open the link");
    await machine.docker("kill", "--signal", "KILL", run.container);
    await waitFor("the agent to run again", SOON_MS, async () => (await machine.running()).includes(run.container));
    expect(await token()).toBe(before);
    await stage.installation.startServer();
    await waitFor("another token", SOON_MS, async () => (await token()) !== before);
    await settled();
  });

  test("exits within its grace period when stopped, its token and secrets are removed, and the engine keeps serving", async () => {
    const [engine, { container }] = [await engineRun(), await agentRun()];
    const events = new DockerEvents(stage.host);
    try {
      await agent.want("POST", ":stop", {});
      await events.until("its end", SOON_MS, agentChange(agent, "die"));
      const ended = events.seen.find(agentChange(agent, "die"));
      expect(ended?.Actor).toMatchObject({ ID: container, Attributes: { exitCode: "0" } });
    } finally {
      events.close();
    }
    await agent.until("stopped");
    await expectSettled(stage, machine, { serves });
    expect(await agent.containers(machine)).toEqual([]);
    await engine.expectStill();
  });

  test("runs exactly once when Docker is back if it was started again while Docker was down", async () => {
    const events = new DockerEvents(stage.host);
    try {
      await agent.want("POST", ":start", {});
      await events.until("its start", SOON_MS, agentChange(agent, "start"));
    } finally {
      events.close();
    }
    await stage.host.killDocker();
    await agent.want("POST", ":stop", {});
    await machine.daemon.kill();
    machine.startDaemon();
    await machine.untilItLogs("the container engine does not respond");
    await waitFor("the platform to wait", SOON_MS, async () => (await agent.get()).lifecycleState === "stopping");
    await agent.want("POST", ":start", {});
    // Nobody knows whether it still runs, so that it begins nowhere.
    expect((await agent.get()).lifecycleState).not.toBe("running");
    await stage.host.startDocker();
    await stage.bystanders.acceptAsTheyAre();
    await agent.until("running");
    await settled();
  });

  test("leaves nothing on a purged machine, not even its volume", async () => {
    const data = [{ name: "data", mountPath: "/data" }];
    await agent.want("PATCH", "", { config: stage.agentConfig({ volumes: data }) });
    const { container } = await waitFor("it with a volume", SOON_MS, async () => {
      const run = await agentRun();
      return (await machine.docker("inspect", "-f", "{{len .Mounts}}", run.container)) === "2" && run;
    });
    await agent.until("running");
    await machine.docker("exec", container, "/bin/busybox", "sh", "-c", "echo kept > /data/note");
    await machine.daemon.stop();
    const [enter = "", ...inside] = stage.host.enter;
    const args = ["purge", "--state-dir", machine.stateDir, "--docker-socket", stage.host.socket];
    await promisify(execFile)(enter, [...inside, process.execPath, DAEMON, ...args]);
    expect(await machine.containers()).toEqual([]);
    expect(await machine.docker("volume", "ls", "-q", "--filter", `label=dev.fairlead.node=${machine.nodeId}`)).toBe(
      "",
    );
    for (const version of ["a1", "a2"]) {
      await expect(machine.docker("image", "inspect", await stage.image(version))).rejects.toThrow();
    }
    expect(await stage.bystanders.difference()).toBeNull();
  });
});
