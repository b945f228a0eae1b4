import { afterAll, beforeAll, expect, test } from "vitest";
import { DEMO_IMAGE, ensureDemoImage } from "../support/docker.ts";
import { DockerHost, describeWithDockerHost } from "../support/docker-host.ts";
import { Installation } from "../support/installation.ts";
import { ANSWER, type Machine } from "../support/machine.ts";
import { waitFor } from "../support/wait-for.ts";

const SOON_MS = 30_000;

/** Probes come often here, so that every conclusion which might be drawn falls into the drill. */
const engineConfig = {
  preset: "fairlead-demo",
  health: { intervalSeconds: 1, timeoutSeconds: 1, failureThreshold: 2 },
};

describeWithDockerHost("kill -9 of dockerd", () => {
  let host: DockerHost;
  let installation: Installation;
  let machine: Machine;
  let engine = "";
  let startedAt = "";

  beforeAll(async () => {
    await ensureDemoImage();
    host = await DockerHost.create();
    await host.copyImage(DEMO_IMAGE);
    installation = await Installation.start(host.ourAddress);
    const { enter, socket } = host;
    machine = await installation.addMachine("far", {
      engineConfig,
      enter,
      dockerSocket: socket,
      daemonArgs: ["--insecure"],
    });
    machine.startDaemon();
    await machine.untilActive();
    [engine = ""] = await machine.containers();
    startedAt = await machine.startedAt(engine);
  });

  afterAll(async () => {
    await installation?.remove();
    await host?.remove();
  });

  const kindsOf = async (): Promise<string[]> => (await machine.events()).map((event) => event.kind);

  test("leaves the engine running: nothing is declared dead, and the same container serves when dockerd is back", async () => {
    await host.killDocker();
    await waitFor("the daemon to tell of it", SOON_MS, async () => (await kindsOf()).includes("runtime_away"));
    // The published port is gone with dockerd's proxy, so that probes fail: longer than it takes to call an engine unhealthy.
    await waitFor("the node to degrade", SOON_MS, async () => (await machine.node()).status === "degraded");
    expect(await kindsOf()).not.toContain("went_quiet");

    await host.startDocker();
    await waitFor("the daemon to tell of it", SOON_MS, async () => (await kindsOf()).includes("runtime_back"));
    expect(await machine.untilItAnswers()).toBe(ANSWER);
    await machine.untilActive();
    expect(await machine.containers()).toEqual([engine]);
    expect(await machine.startedAt(engine)).toBe(startedAt);
    const kinds = await kindsOf();
    for (const kind of ["workload_stopped", "workload_exited", "container_removed"]) expect(kinds).not.toContain(kind);
    expect(kinds.filter((kind) => kind === "container_created")).toHaveLength(1);
  });

  test("leaves the engine alone even if a daemon starts meanwhile", async () => {
    await host.killDocker();
    await machine.daemon.kill();
    machine.startDaemon();
    await machine.untilItLogs("the container engine does not respond");
    await host.startDocker();
    expect(await machine.untilItAnswers()).toBe(ANSWER);
    expect(await machine.containers()).toEqual([engine]);
    expect(await machine.startedAt(engine)).toBe(startedAt);
  });
});
