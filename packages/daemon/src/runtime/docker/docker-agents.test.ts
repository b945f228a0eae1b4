import { randomBytes } from "node:crypto";
import type { WorkloadSpec } from "@fairlead/protocol/workload";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { anAgent, aSpec } from "../../testing/builders.ts";
import { createOnNetwork } from "../../testing/create-on-network.ts";
import {
  DOCKER_SOCKET,
  type DockerCorner,
  dockerCorner,
  removeAllOf,
  whyNoDocker,
} from "../../testing/docker-engine.ts";
import { workloadTypeOf } from "../ownership.ts";
import { DockerRuntime } from "./docker-runtime.ts";

const reason = await whyNoDocker();
const title = reason === null ? "agents on Docker" : `agents on Docker (skipped: ${reason})`;

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

describe.skipIf(reason !== null)(title, () => {
  const owner = { installationId: "ins_test", nodeId: `nod_${randomBytes(6).toString("hex")}` };
  const runtime = new DockerRuntime(DOCKER_SOCKET);
  let corner: DockerCorner;

  beforeAll(async () => {
    corner = await dockerCorner("agents");
  });
  afterAll(async () => {
    await removeAllOf(corner.docker, owner.nodeId);
    await corner.close();
  });

  async function run(spec: WorkloadSpec): Promise<string> {
    const name = `fairlead-agents-${randomBytes(4).toString("hex")}`;
    const plan = { spec: { ...spec, image: corner.image }, name, owner, projectId: "prj_agents", generation: 1 };
    const id = await createOnNetwork(runtime, { ...plan, secrets: null });
    await runtime.start(id);
    return id;
  }

  /** Output of a command in a running container. */
  async function printedBy(id: string, ...command: string[]): Promise<string> {
    const exec = await corner.docker.getContainer(id).exec({ Cmd: ["/bin/busybox", ...command], AttachStdout: true });
    const stream = await exec.start({ Tty: true });
    const chunks: Buffer[] = [];
    for await (const chunk of stream) chunks.push(Buffer.from(chunk));
    return Buffer.concat(chunks).toString();
  }

  test("a container is marked as an agent's, and one without the label is an engine's", async () => {
    const agent = await runtime.inspect(await run(anAgent()));
    expect(agent && workloadTypeOf(agent)).toBe("WORKLOAD_TYPE_AGENT");
    expect(workloadTypeOf({ labels: {} })).toBe("WORKLOAD_TYPE_ENGINE");
  });

  test("each agent has its own volumes, which outlive its containers and are removed with the node's", async () => {
    const volumes = [{ name: "data", mountPath: "/data" }];
    const [a, b] = ["agt_a", "agt_b"].map((workloadId) => anAgent({ workloadId, volumes }));
    if (a === undefined || b === undefined) throw new Error("two were made");
    const first = await run(a);
    await printedBy(first, "sh", "-c", "echo kept > /data/note");
    await runtime.stop(first, 1);
    await runtime.remove(first);
    expect(await printedBy(await run(a), "cat", "/data/note")).toContain("kept");
    for (const other of [b, aSpec({ volumes })]) {
      expect(await printedBy(await run(other), "ls", "/data")).not.toContain("note");
    }
    for (const { id } of await runtime.list(owner)) {
      await runtime.stop(id, 1);
      await runtime.remove(id);
    }
    expect(await runtime.removeVolumes(owner)).toEqual([]);
    const { Volumes } = await corner.docker.listVolumes({ filters: { label: [`dev.fairlead.node=${owner.nodeId}`] } });
    expect(Volumes ?? []).toEqual([]);
  });
});
