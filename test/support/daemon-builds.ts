import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DaemonBuild, daemonBuildFile, daemonBuildSchema } from "@fairlead/protocol/daemon-builds";
import { buildDaemon } from "../../scripts/builds/build-daemon.ts";
import { readSource } from "../../scripts/builds/checkout.ts";

/** Builds of the daemon as an operator offers them: one that is made as for a release, and others made of it. */

/** What is wrong with a build. Each passes `--version`; all but one pass `check` too. */
export const FAULTS = {
  "cannot read the state": { launcher: 'if [ "$1" = check ]; then echo "cannot read the state" >&2; exit 1; fi' },
  "does not start": { launcher: 'if [ "$1" = run ]; then echo "broken" >&2; exit 1; fi' },
  "hangs before it starts": { launcher: 'if [ "$1" = run ]; then exec sleep 3600; fi' },
  "never reaches the control plane": { program: (text: string) => text.replaceAll("/link`", "/lost`") },
} as const satisfies Record<string, { launcher?: string; program?: (text: string) => string }>;
export type Fault = keyof typeof FAULTS;

/** Folders `<out>/<version>/`, for `builds.dir` of a control plane. */
export class DaemonBuilds {
  readonly out: string;
  readonly #base: string;

  private constructor(out: string, base: string) {
    this.out = out;
    this.#base = base;
  }

  /** @param base the version that is built from this checkout. */
  static async make(out: string, base: string): Promise<DaemonBuilds> {
    await buildDaemon(readSource(base), { architectures: ["x64"], out });
    return new DaemonBuilds(out, base);
  }

  tarOf(version: string): string {
    return join(this.out, version, daemonBuildFile(version, "x64"));
  }

  /** The same program as another version; with a fault, one that passes for good and is not. */
  add(version: string, fault?: Fault): void {
    const stage = mkdtempSync(join(tmpdir(), "fairlead-build-"));
    try {
      execFileSync("tar", ["-xzf", this.tarOf(this.#base), "-C", stage]);
      this.#rename(stage, version, fault);
      mkdirSync(join(this.out, version));
      // Fast rather than small: these travel over loopback.
      execFileSync("tar", ["-I", "gzip -1", "-cf", this.tarOf(version), "-C", stage, "."]);
    } finally {
      rmSync(stage, { recursive: true, force: true });
    }
    this.#describe(version);
  }

  #rename(stage: string, version: string, fault: Fault | undefined): void {
    const changes: { launcher?: string; program?: (text: string) => string } = fault === undefined ? {} : FAULTS[fault];
    const { launcher, program = (text: string): string => text } = changes;
    const file = join(stage, "lib/daemon.js");
    const before = readFileSync(file, "utf8").replaceAll(this.#base, version);
    const after = program(before);
    if (changes.program !== undefined && after === before)
      throw new Error(`the fault "${fault}" finds nothing to break`);
    writeFileSync(file, after);
    if (launcher === undefined) return;
    const start = join(stage, "bin/fairlead-daemon");
    writeFileSync(start, readFileSync(start, "utf8").replace("\n", `\n${launcher}\n`));
  }

  #describe(version: string): void {
    const content = readFileSync(this.tarOf(version));
    const sha256 = createHash("sha256").update(content).digest("hex");
    const file = { arch: "x64", file: daemonBuildFile(version, "x64"), sha256, bytes: content.length } as const;
    const manifest: DaemonBuild = { ...this.#manifest(), version, files: [file] };
    writeFileSync(join(this.out, version, "manifest.json"), JSON.stringify(manifest));
  }

  #manifest(): DaemonBuild {
    const text = readFileSync(join(this.out, this.#base, "manifest.json"), "utf8");
    return daemonBuildSchema.parse(JSON.parse(text));
  }
}

/** Puts a version where install.sh puts it. @param root as `/opt/fairlead-daemon` */
export function installDaemon(builds: DaemonBuilds, version: string, root: string): void {
  const folder = join(root, "versions", version);
  mkdirSync(folder, { recursive: true });
  execFileSync("tar", ["-xzf", builds.tarOf(version), "-C", folder, "--no-same-owner"]);
  execFileSync("ln", ["-sfn", `versions/${version}`, join(root, "current")]);
}
