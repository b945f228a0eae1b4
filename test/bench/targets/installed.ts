import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";

/** A server program of the system's. Debian keeps them where only root looks. @returns its path, null where there is none. */
export function findInstalled(name: string): string | null {
  const [found] = spawnSync("sh", ["-c", `command -v ${name}`], { encoding: "utf8" }).stdout.split("\n");
  if (found) return found;
  return existsSync(`/usr/sbin/${name}`) ? `/usr/sbin/${name}` : null;
}
