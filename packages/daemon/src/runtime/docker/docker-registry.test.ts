import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { imageDigest } from "../../reconcile/engine-facts.ts";
import { DOCKER_SOCKET, type DockerCorner, dockerCorner, whyNoDocker } from "../../testing/docker-engine.ts";
import { type Registry, startRegistry, whyNoRegistry } from "../../testing/registry.ts";
import type { PullProgress, RegistryCredentials } from "../container-runtime.ts";
import { DockerRuntime } from "./docker-runtime.ts";

const reason = (await whyNoDocker()) ?? whyNoRegistry();
const title = reason === null ? "a real registry" : `a real registry (skipped: ${reason})`;
const LOGIN = { username: "robot", password: 'p4ss "wörd" /+' };

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

describe.skipIf(reason !== null)(title, () => {
  let corner: DockerCorner;
  let registry: Registry;
  let digest: string;
  const runtime = new DockerRuntime(DOCKER_SOCKET);

  beforeAll(async () => {
    corner = await dockerCorner("registry");
    registry = await startRegistry(LOGIN);
    digest = await registry.push(corner.docker, corner.image, `${registry.host}/engine`);
  });
  afterAll(async () => {
    await registry.close();
    await corner.close();
  });

  async function pull(reference: string, credentials: RegistryCredentials | null): Promise<PullProgress[]> {
    const told: PullProgress[] = [];
    const { signal } = new AbortController();
    const onProgress = (progress: PullProgress): void => void told.push(progress);
    await runtime.pull(`${registry.host}/${reference}`, { credentials, onProgress, inactivityMs: 30_000, signal });
    return told;
  }

  test("an image is pulled by tag and by digest with the workload's own login", async () => {
    for (const reference of ["engine:1", `engine@${digest}`]) {
      await pull(reference, LOGIN);
      const name = `${registry.host}/${reference}`;
      const image = await runtime.image(name);
      expect(imageDigest(name, image)).toBe(digest);
      await runtime.removeImage(name);
      expect(await runtime.image(name)).toBeNull();
    }
    // The layers already existed under another name, which remains.
    expect(await runtime.image(corner.image)).not.toBeNull();
  });

  test.each([
    ["no login", "engine:1", null],
    ["a wrong password", "engine:1", { ...LOGIN, password: "wrong" }],
  ])("%s is rejected, and the error says what to do, without the password", async (_what, reference, login) => {
    const failure = await pull(reference, login).catch((error: unknown) => error);
    expect(failure).toMatchObject({ kind: "pull-failed" });
    expect(String(failure)).toMatch(/denied access to .* `registryAuthSecret`/);
    expect(String(failure)).not.toContain(login?.password ?? LOGIN.password);
  });

  test("a missing tag and a missing digest are reported as such", async () => {
    for (const reference of ["engine:none", `engine@sha256:${"0".repeat(64)}`]) {
      const name = `${registry.host}/${reference}`;
      await expect(pull(reference, LOGIN)).rejects.toMatchObject({
        kind: "pull-failed",
        message: `${name} was not found in the registry ${registry.host}`,
      });
    }
  });
});
