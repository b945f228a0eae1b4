import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DockerHost } from "../../support/docker-host.ts";

/** How an engine misbehaves; see `engine.sh`. */
export type EngineFault =
  | "none"
  | "broken"
  | "never-healthy"
  | "slow"
  | "dies-after-ready"
  | "stubborn"
  | "chatty"
  /** Nothing is wrong with it but its size. */
  | "large";

export interface EngineImage {
  /** The engine's answer to every question. */
  readonly version: string;
  readonly fault: EngineFault;
}

const SCRIPTS = ["engine.sh", "answer.sh"];
/** Random bytes: no registry and no network packs them. */
const LARGE_BYTES = 14 * 1024 * 1024;

/** Makes a tiny engine of busybox and two scripts on the host's Docker engine. Every image has a layer of its own, so that a pull moves bytes. */
export function importEngine(host: DockerHost, { version, fault }: EngineImage): string {
  const folder = mkdtempSync(join(tmpdir(), "fairlead-engine-"));
  const root = join(folder, "root");
  mkdirSync(join(root, "bin"), { recursive: true });
  copyFileSync("/bin/busybox", join(root, "bin/busybox"));
  chmodSync(join(root, "bin/busybox"), 0o755);
  for (const script of SCRIPTS) copyFileSync(new URL(script, import.meta.url), join(root, script));
  writeFileSync(join(root, "weights"), randomBytes(fault === "large" ? LARGE_BYTES : 1024));
  const archive = join(folder, "root.tar");
  execFileSync("tar", ["-C", root, "-cf", archive, "."]);
  const image = `fairlead-drill/${version}-${fault}:1`;
  const changes = [
    `ENV ENGINE_VERSION=${version}`,
    `ENV ENGINE_FAULT=${fault}`,
    'ENTRYPOINT ["/bin/busybox","sh","/engine.sh"]',
  ].flatMap((change) => ["--change", change]);
  execFileSync("docker", ["-H", `unix://${host.socket}`, "import", ...changes, archive, image]);
  rmSync(folder, { recursive: true });
  return image;
}
