import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { LOCAL_HOST } from "@fairlead/protocol/workload";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DockerRuntime } from "../../packages/daemon/src/runtime/docker/docker-runtime.ts";
import { networkName } from "../../packages/daemon/src/runtime/ownership.ts";
import { anAgent } from "../../packages/daemon/src/testing/builders.ts";
import { describeWithDocker } from "../support/docker.ts";
import { DockerHost, whyNoDockerHost } from "../support/docker-host.ts";

const IMAGE = "fairlead/demo-engine:1";
const START_MS = 60_000;

/** Debian 12's names no gateway of its default network until its second start. */
describeWithDocker("a Docker engine on its first start", () => {
  const reason = whyNoDockerHost();
  describe.skipIf(reason !== null)(reason ?? "in a network namespace", () => {
    const owner = { installationId: "ins_new", nodeId: "nod_new0docker" };
    let host: DockerHost;
    beforeAll(async () => {
      host = await DockerHost.create();
      await host.copyImage(IMAGE);
    }, START_MS);
    afterAll(() => host?.remove());

    test("gives an agent a network with a gateway through which the agent reaches the daemon", async () => {
      const runtime = new DockerRuntime(host.socket);
      const platform = { name: LOCAL_HOST, host: "127.0.0.1", port: 8081, forwarded: true };
      const network = { internet: true, platform };
      const spec = anAgent({ image: IMAGE, args: [], network });
      const { workloadId } = spec;
      await runtime.addNetwork({ name: networkName(owner.nodeId, spec), owner, workloadId, internet: true });
      const [made] = await runtime.networks(owner);
      expect(made?.gateway).toMatch(/^198\.19\.\d+\.\d+$/);
      const plan = { spec, name: "fairlead-new", owner, projectId: "prj_new", generation: 1, secrets: null };
      const id = await runtime.create(plan);
      await runtime.start(id);
      const named = await host.docker("inspect", "-f", "{{json .HostConfig.ExtraHosts}}", id);
      expect(JSON.parse(named)).toEqual([`${LOCAL_HOST}:${made?.gateway}`]);
      // The machine has that address, so the daemon can listen there.
      const [nsenter = "", ...inside] = host.enter;
      const { stdout } = await promisify(execFile)(nsenter, [...inside, "ip", "-4", "-o", "address"]);
      expect(stdout).toContain(` ${made?.gateway}/`);
    });
  });
});
