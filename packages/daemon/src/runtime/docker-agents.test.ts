import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { WorkloadSpec } from "@fairlead/protocol/workload";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { LocalPorts } from "../host/local-ports.ts";
import { aDesiredState, anAgent, aSpec } from "../testing/builders.ts";
import { DOCKER_SOCKET, type DockerCorner, dockerCorner, removeAllOf, whyNoDocker } from "../testing/docker-engine.ts";
import { silentLog } from "../testing/silent-log.ts";
import { systemTimers } from "../timers.ts";
import { DockerRuntime } from "./docker-runtime.ts";
import { typeOf } from "./ownership.ts";

const reason = await whyNoDocker();
const title = reason === null ? "agents on Docker" : `agents on Docker (skipped: ${reason})`;

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

describe.skipIf(reason !== null)(title, () => {
  const owner = { installationId: "ins_test", nodeId: `nod_${randomBytes(6).toString("hex")}` };
  const runtime = new DockerRuntime(DOCKER_SOCKET);
  let corner: DockerCorner;
  let server: Server;
  let port: number;
  let ports: LocalPorts;

  beforeAll(async () => {
    corner = await dockerCorner("agents");
    server = createServer((_request, response) => response.end("from this machine's loopback")).listen(0, "127.0.0.1");
    await once(server, "listening");
    ({ port } = server.address() as AddressInfo);
    ports = new LocalPorts({ runtime, timers: systemTimers, log: silentLog });
  });
  afterAll(async () => {
    await ports.close();
    server.close();
    await removeAllOf(corner.docker, owner.nodeId);
    await corner.close();
  });

  async function run(spec: WorkloadSpec): Promise<string> {
    const name = `fairlead-agents-${randomBytes(4).toString("hex")}`;
    const plan = { spec: { ...spec, image: corner.image }, name, owner, projectId: "prj_agents", generation: 1 };
    const id = await runtime.create({ ...plan, secrets: null });
    await runtime.start(id);
    return id;
  }

  /** What a command of a container that runs prints. */
  async function printedBy(id: string, ...command: string[]): Promise<string> {
    const exec = await corner.docker.getContainer(id).exec({ Cmd: ["/bin/busybox", ...command], AttachStdout: true });
    const stream = await exec.start({ Tty: true });
    const chunks: Buffer[] = [];
    for await (const chunk of stream) chunks.push(Buffer.from(chunk));
    return Buffer.concat(chunks).toString();
  }

  test("a port of the machine's loopback is reached by the name that the spec's ports bring, and no other port is", async () => {
    const spec = anAgent({ localPorts: [port] });
    ports.desiredChanged(aDesiredState({ workloads: [spec] }));
    const id = await run(spec);
    const request = "printf 'GET / HTTP/1.0\\r\\n\\r\\n'";
    const ask = (at: number) =>
      printedBy(id, "sh", "-c", `${request} | /bin/busybox nc -w 3 host.docker.internal ${at}`);
    await vi.waitFor(async () => expect(await ask(port)).toContain("from this machine's loopback"), 20_000);
    const other = createServer((_request, response) => response.end("not asked for")).listen(0, "127.0.0.1");
    await once(other, "listening");
    expect(await ask((other.address() as AddressInfo).port)).not.toContain("not asked for");
    other.close();
  });

  test("a workload that names no ports knows no such name", async () => {
    expect(await printedBy(await run(anAgent()), "cat", "/etc/hosts")).not.toContain("host.docker.internal");
  });

  test("a container tells that it is an agent's, and one without the label is an engine's", async () => {
    const agent = await runtime.inspect(await run(anAgent()));
    expect(agent && typeOf(agent)).toBe("WORKLOAD_TYPE_AGENT");
    expect(typeOf({ labels: {} })).toBe("WORKLOAD_TYPE_ENGINE");
  });

  test("each agent has volumes of its own, which outlive its containers and are removed with the node's", async () => {
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
