import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createLog } from "../../installation/process/log.ts";
import { DaemonBuildService } from "./daemon-build-service.ts";
import { offerBuild } from "./offered-build.fixture.ts";

let root: string;
let lines: string[];
let service: DaemonBuildService;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "fairlead-builds-"));
  lines = [];
  const log = createLog({ level: "warn", destination: { write: (line) => lines.push(line) } });
  service = new DaemonBuildService({
    folders: [join(root, "own"), join(root, "brought")],
    serverVersion: "1.0.0",
    log,
  });
});
afterEach(() => rm(root, { recursive: true }));

const nameOf = (version: string): string => `fairlead-daemon-${version}-linux-x64.tar.gz`;

function place(folder: string, version: string, content = "tar"): string {
  offerBuild(join(root, folder), version, content);
  return join(root, folder, version);
}

describe("the available builds", () => {
  test("are none if there is no folder", async () => {
    expect(await service.list()).toEqual([]);
    expect(await service.forNewNodes()).toBeNull();
    expect(lines).toEqual([]);
  });

  test("appear without a restart, and an operator's own build takes precedence over the bundled one", async () => {
    place("brought", "1.0.0", "brought");
    expect(await service.forNewNodes()).toMatchObject({ version: "1.0.0" });
    const own = place("own", "1.0.0", "own");
    expect(await service.find(nameOf("1.0.0"))).toMatchObject({ path: join(own, nameOf("1.0.0")) });
    expect(await service.list()).toHaveLength(1);
  });

  test("exclude a broken build, which is logged once", async () => {
    place("own", "1.0.0");
    const broken = place("own", "1.1.0");
    await writeFile(join(broken, "manifest.json"), '{"version":"../../etc"}');
    await mkdir(join(root, "own", "1.2.0.half-x1"));
    expect((await service.list()).map(({ version }) => version)).toEqual(["1.0.0"]);
    await service.list();
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain("1.1.0");
  });

  test("do not include an archive of the wrong size, or one named by a path", async () => {
    const folder = place("own", "1.0.0");
    await writeFile(join(folder, nameOf("1.0.0")), "half");
    await expect(service.find(nameOf("1.0.0"))).rejects.toMatchObject({ code: "not_found" });
    await expect(service.find("../own/1.0.0/manifest.json")).rejects.toMatchObject({ code: "not_found" });
    expect(await service.find(`${nameOf("1.0.0")}.sha256`)).toMatchObject({ kind: "checksum" });
  });
});
