import { randomBytes } from "node:crypto";
import type { WorkloadSpec } from "@fairlead/protocol/workload";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { aSpec } from "../../testing/builders.ts";
import { createOnNetwork } from "../../testing/create-on-network.ts";
import {
  DOCKER_SOCKET,
  type DockerCorner,
  dockerCorner,
  removeAllOf,
  whyNoDocker,
} from "../../testing/docker-engine.ts";
import { DockerRuntime } from "./docker-runtime.ts";

const reason = await whyNoDocker();
const title = reason === null ? "processes on Docker" : `processes on Docker (skipped: ${reason})`;

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

/** Keeps creating orphans, then runs a program that does not reap them. */
const ORPHANS = "while :; do ( sleep 0.05 & ); sleep 0.02; done & exec /bin/busybox sleep 600";
const SHELL = ["/bin/busybox", "sh", "-c"];
const LIMIT = 20;

describe.skipIf(reason !== null)(title, () => {
  const owner = { installationId: "ins_test", nodeId: `nod_${randomBytes(6).toString("hex")}` };
  const runtime = new DockerRuntime(DOCKER_SOCKET);
  let corner: DockerCorner;

  beforeAll(async () => {
    corner = await dockerCorner("init");
  });
  afterEach(() => removeAllOf(corner.docker, owner.nodeId));
  afterAll(() => corner.close());

  async function run(changes: Partial<WorkloadSpec>): Promise<string> {
    const spec = aSpec({ image: corner.image, resources: { pids: LIMIT }, ...changes });
    const name = `fairlead-init-${randomBytes(4).toString("hex")}`;
    const plan = { spec, name, owner, projectId: "prj_contract", generation: 1, secrets: null };
    const id = await createOnNetwork(runtime, plan);
    await runtime.start(id);
    return id;
  }

  test("that a program leaves behind are reaped, so that it never runs out of processes", async () => {
    const id = await run({ command: SHELL, args: [ORPHANS] });
    // Each count takes tens of milliseconds, or a second with older engines, in which the limit would be reached.
    const counts: number[] = [];
    for (let look = 0; look < 5; look += 1) counts.push((await runtime.processes(id))?.count ?? 0);
    expect(Math.min(...counts)).toBeGreaterThan(0);
    expect(Math.max(...counts)).toBeLessThan(LIMIT);
    expect(await runtime.inspect(id)).toMatchObject({ state: "running" });
  });

  test("that are left without an init process accumulate up to the limit, and the count shows it", async () => {
    const id = await run({ command: SHELL, args: [ORPHANS], init: false });
    await vi.waitFor(async () => expect(await runtime.processes(id)).toEqual({ count: LIMIT, limit: LIMIT }), {
      timeout: 20_000,
      interval: 200,
    });
  });

  test("receive signals, and the program's exit code is the container's", async () => {
    const id = await run({
      command: SHELL,
      args: ["trap 'exit 7' TERM; while :; do sleep 0.1; done"],
    });
    await runtime.stop(id, 5);
    expect(await runtime.inspect(id)).toMatchObject({ state: "exited", exitCode: 7 });
  });

  test("an image reports what it starts with", async () => {
    const image = await runtime.image(corner.image);
    expect(image?.start).toEqual({ entrypoint: SHELL, command: [expect.any(String)] });
  });
});
