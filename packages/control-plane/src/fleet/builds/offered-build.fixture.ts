import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type DaemonBuild, daemonBuildFile } from "@fairlead/protocol/daemon-builds";

/** Puts a build into a folder of builds, as `scripts/build-daemon` does. @returns its manifest. */
export function offerBuild(folder: string, version: string, content = "tar"): DaemonBuild {
  const path = join(folder, version);
  mkdirSync(path, { recursive: true });
  const sha256 = createHash("sha256").update(content).digest("hex");
  const file = { arch: "x64", file: daemonBuildFile(version, "x64"), sha256, bytes: content.length } as const;
  const build = {
    version,
    commit: "c0ffee",
    committedAt: "2026-01-01T00:00:00Z",
    protocolVersions: [1],
    files: [file],
  };
  writeFileSync(join(path, file.file), content);
  writeFileSync(join(path, "manifest.json"), JSON.stringify(build));
  return build;
}
