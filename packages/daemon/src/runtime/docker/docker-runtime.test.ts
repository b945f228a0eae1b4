import { randomBytes } from "node:crypto";
import type { Gpus } from "@fairlead/protocol/engine-config";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { aSpec } from "../../testing/builders.ts";
import { createOnNetwork } from "../../testing/create-on-network.ts";
import {
  DOCKER_SOCKET,
  type DockerCorner,
  dockerCorner,
  removeAllOf,
  whyNoDocker,
} from "../../testing/docker-engine.ts";
import { containerRuntimeContract } from "../container-runtime.contract.ts";
import type { LogLine } from "../container-runtime.ts";
import { DockerRuntime } from "./docker-runtime.ts";

const reason = await whyNoDocker();
const title = reason === null ? "Docker" : `Docker (skipped: ${reason})`;

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

describe.skipIf(reason !== null)(title, () => {
  let corner: DockerCorner;
  beforeAll(async () => {
    corner = await dockerCorner("contract");
  });
  afterAll(() => corner.close());

  const open = async () => {
    const owner = { installationId: "ins_test", nodeId: `nod_${randomBytes(6).toString("hex")}` };
    const foreign: string[] = [];
    return {
      runtime: new DockerRuntime(DOCKER_SOCKET),
      owner,
      image: corner.image,
      endsWithThree: { command: ["/bin/busybox", "sh", "-c", "exit 3"], args: [] },
      // A port without a listener on 127.0.0.1: no DNS, no real registry.
      missingImage: "127.0.0.1:9/fairlead-test/none:1",
      plantForeign: async (name: string) => {
        await corner.docker.createContainer({ name, Image: corner.image });
        foreign.push(name);
      },
      close: async () => {
        for (const name of foreign) await corner.docker.getContainer(name).remove({ force: true });
        await removeAllOf(corner.docker, owner.nodeId);
      },
    };
  };
  containerRuntimeContract(open);

  test("a workload runs confined: loopback port only, no capabilities, read-only root, bounded log", async () => {
    const { runtime, owner, close } = await open();
    const spec = aSpec({
      image: corner.image,
      env: { KEY: "two\nlines", EMPTY: "" },
      volumes: [{ name: "data", mountPath: "/data" }],
      resources: { cpus: 0.5, memoryMb: 32, shmMb: 8, pids: 20 },
    });
    const name = `fairlead-contract-${owner.nodeId}-confined`;
    const id = await createOnNetwork(runtime, {
      spec,
      name,
      owner,
      projectId: `prj_${owner.nodeId}`,
      generation: 1,
      secrets: null,
    });
    await runtime.start(id);
    const { HostConfig, Config, NetworkSettings, Mounts } = await corner.docker.getContainer(id).inspect();
    expect(HostConfig).toMatchObject({
      CapDrop: ["ALL"],
      SecurityOpt: ["no-new-privileges"],
      ReadonlyRootfs: true,
      RestartPolicy: { Name: "no" },
      LogConfig: { Type: "json-file", Config: { "max-size": "10m", "max-file": "3" } },
      Memory: 32 * 1024 * 1024,
      NanoCpus: 500_000_000,
      ShmSize: 8 * 1024 * 1024,
      PidsLimit: 20,
    });
    expect(Config.Env).toEqual(expect.arrayContaining(["KEY=two\nlines", "EMPTY="]));
    expect(NetworkSettings.Ports["8080/tcp"]).toMatchObject([{ HostIp: "127.0.0.1" }]);
    expect(Mounts).toMatchObject([{ Type: "volume", Name: `fairlead-prj_${owner.nodeId}-data`, Destination: "/data" }]);
    const volume = await corner.docker.getVolume(`fairlead-prj_${owner.nodeId}-data`).inspect();
    expect(volume.Labels).toEqual({
      "dev.fairlead.installation": owner.installationId,
      "dev.fairlead.node": owner.nodeId,
    });
    await close();
  });

  test.each([
    ["/no/such", 'the command "/no/such" was not found in the image'],
    ["nosuch", 'the command "nosuch" was not found in the image'],
    ["/bin", /^the image's command "\/bin" cannot be executed/],
  ])("the error names a command that cannot be run: %s", async (command, words) => {
    const { runtime, owner, close } = await open();
    const name = `fairlead-contract-${owner.nodeId}-command`;
    const spec = aSpec({ image: corner.image, command: [command], init: false });
    const plan = { spec, name, owner, projectId: "prj_contract", generation: 1, secrets: null };
    const id = await createOnNetwork(runtime, plan);
    const message = typeof words === "string" ? words : expect.stringMatching(words);
    await expect(runtime.start(id)).rejects.toMatchObject({ kind: "rejected", message });
    // What a daemon started later finds.
    expect(await runtime.inspect(id)).toMatchObject({ state: "created", error: message });
    await close();
  });

  test.each([
    ["/no/such", 127],
    ["/bin", 126],
  ])(
    "under Docker's init process such a command ends immediately with a telling exit code: %s",
    async (command, code) => {
      const { runtime, owner, close } = await open();
      const name = `fairlead-contract-${owner.nodeId}-command`;
      const spec = aSpec({ image: corner.image, command: [command] });
      const plan = { spec, name, owner, projectId: "prj_contract", generation: 1, secrets: null };
      const id = await createOnNetwork(runtime, plan);
      await runtime.start(id);
      await vi.waitFor(async () =>
        expect(await runtime.inspect(id)).toMatchObject({ state: "exited", exitCode: code }),
      );
      await close();
    },
  );

  test("GPUs are requested as with `docker run --gpus`", async () => {
    const { runtime, owner, close } = await open();
    const requested = async (gpus: Gpus) => {
      const spec = aSpec({ image: corner.image, resources: { gpus } });
      const name = `fairlead-contract-${owner.nodeId}-gpus-${randomBytes(2).toString("hex")}`;
      const id = await createOnNetwork(runtime, {
        spec,
        name,
        owner,
        projectId: "prj_contract",
        generation: 1,
        secrets: null,
      });
      return (await corner.docker.getContainer(id).inspect()).HostConfig.DeviceRequests;
    };
    const common = { Driver: "nvidia", Capabilities: [["gpu"]] };
    expect(await requested("all")).toMatchObject([{ ...common, Count: -1 }]);
    expect(await requested(2)).toMatchObject([{ ...common, Count: 2 }]);
    expect(await requested(["GPU-1", "1"])).toMatchObject([{ ...common, DeviceIDs: ["GPU-1", "1"] }]);
    expect(await requested(0)).toBeNull();
    await close();
  });

  test("output is followed as it arrives, until the container ends or the reader leaves", async () => {
    const { runtime, owner, close } = await open();
    const script = "echo one; echo two >&2; sleep 0.3; echo three; trap 'echo bye; exit 0' TERM; sleep 100 & wait";
    const spec = aSpec({ image: corner.image, command: ["/bin/busybox", "sh", "-c"], args: [script] });
    const name = `fairlead-contract-${owner.nodeId}-logs`;
    const id = await createOnNetwork(runtime, {
      spec,
      name,
      owner,
      projectId: "prj_contract",
      generation: 1,
      secrets: null,
    });
    await runtime.start(id);
    const lines: LogLine[] = [];
    const { signal } = new AbortController();
    for await (const line of runtime.followLogs(id, { since: null, tail: null, follow: true }, signal)) {
      lines.push(line);
      if (line.text === "three") await runtime.stop(id, 5);
    }
    expect(lines.map(({ text }) => text).toSorted()).toEqual(["bye", "one", "three", "two"]);
    expect(lines.find(({ text }) => text === "two")?.stream).toBe("stderr");
    const since = lines.find(({ text }) => text === "bye")?.at ?? "";
    const later: string[] = [];
    for await (const { text } of runtime.followLogs(id, { since, tail: null, follow: false }, signal)) later.push(text);
    expect(later).toEqual(["bye"]);
    await runtime.start(id);
    const leaving = new AbortController();
    const ended = (async () => {
      for await (const _line of runtime.followLogs(id, { since: null, tail: 1, follow: true }, leaving.signal))
        leaving.abort();
    })();
    await ended;
    expect(await runtime.inspect(id)).toMatchObject({ state: "running" });
    await close();
  });
});
