import { spawnSync } from "node:child_process";
import { whyNoDockerHost } from "../support/docker-host.ts";

/** @returns why this machine cannot have a bare Debian beside itself, or null where it can. */
export function whyNotTried(): string | null {
  if (process.arch !== "x64") return "the demo engine's image is for x64";
  if (spawnSync("which", ["apt-get"]).status !== 0) return "a bare Debian is made with Debian's own tools";
  return whyNoDockerHost();
}
