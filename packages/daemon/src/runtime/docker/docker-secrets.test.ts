import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
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
import type { ContainerSecrets } from "../container-runtime.ts";
import { secretFilesOf } from "../ownership.ts";
import { DockerRuntime } from "./docker-runtime.ts";

const reason = await whyNoDocker();
const title = reason === null ? "secrets on Docker" : `secrets on Docker (skipped: ${reason})`;

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

describe.skipIf(reason !== null)(title, () => {
  const owner = { installationId: "ins_test", nodeId: `nod_${randomBytes(6).toString("hex")}` };
  const runtime = new DockerRuntime(DOCKER_SOCKET);
  let corner: DockerCorner;
  let folder: string;

  beforeAll(async () => {
    corner = await dockerCorner("user", "app");
    folder = mkdtempSync(join(tmpdir(), "fairlead-mount-"));
    writeFileSync(join(folder, "TOKEN"), "v", { mode: 0o444 });
  });
  afterAll(async () => {
    await removeAllOf(corner.docker, owner.nodeId);
    await corner.close();
    rmSync(folder, { recursive: true });
  });

  function create(image: string, secrets: ContainerSecrets | null = null): Promise<string> {
    const wanted = [
      { name: "TOKEN", as: "file", version: "1.a" },
      { name: "KEY", as: "env", version: "1.a" },
      { name: "REG", as: "registry", version: "1.a" },
    ] as const;
    const spec = aSpec({ image, env: { KEY: "of the config", MODE: "fast" }, secrets: [...wanted] });
    const name = `fairlead-secrets-${randomBytes(4).toString("hex")}`;
    return createOnNetwork(runtime, { spec, name, owner, projectId: "prj_contract", generation: 1, secrets });
  }

  test("the folder is mounted read-only, a variable is set, and labels contain only file names", async () => {
    const id = await create(corner.image, { folder, env: { KEY: "canary" } });
    const { Mounts, Config } = await corner.docker.getContainer(id).inspect();
    expect(Mounts).toMatchObject([{ Type: "bind", Source: folder, Destination: "/run/secrets", RW: false }]);
    expect(Config.Env).toEqual(expect.arrayContaining(["KEY=canary", "MODE=fast"]));
    expect(secretFilesOf(Config.Labels)).toEqual([{ name: "TOKEN", key: "TOKEN" }]);
    expect(JSON.stringify(Config.Labels)).not.toContain("canary");
    await expect(runtime.start(id)).resolves.toBeUndefined();
  });

  test("a user named by the image has the number from the image's list, even before the container has run", async () => {
    expect(await runtime.userOf(await create(corner.image))).toBe(1234);
  });

  test("a user that is not in the list is rejected by name", async () => {
    const repo = corner.image.replace("/user:", "/ghost:");
    const container = corner.docker.getContainer(await create(corner.image));
    const [name, tag] = repo.split(":");
    await container.commit({ repo: name, tag, changes: "USER ghost" });
    try {
      await expect(runtime.userOf(await create(repo))).rejects.toThrow('"ghost" is not in its /etc/passwd');
    } finally {
      await removeAllOf(corner.docker, owner.nodeId);
      await corner.docker.getImage(repo).remove({ force: true });
    }
  });
});
