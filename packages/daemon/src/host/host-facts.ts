import { cpus, hostname } from "node:os";
import type { HostFacts } from "@fairlead/protocol/daemon-link";
import { fsSize, mem, osInfo } from "systeminformation";

const MEGABYTE = 1024 * 1024;

export type StaticFacts = Omit<HostFacts, "diskFreeMb" | "dockerVersion">;

/** What does not change while the daemon runs; asked once. */
export async function readStaticFacts(): Promise<StaticFacts> {
  const [system, memory] = await Promise.all([osInfo(), mem()]);
  return {
    operatingSystem: `${system.distro} ${system.release}`.trim() || system.platform,
    kernel: system.kernel,
    architecture: system.arch,
    hostName: hostname(),
    cpus: cpus().length,
    memoryMb: Math.floor(memory.total / MEGABYTE),
  };
}

/** Free space where a folder lies, in megabytes; 0 where that cannot be told. @param folder the container engine's root. */
export async function readDiskFreeMb(folder: string): Promise<number> {
  const systems = await fsSize();
  const holding = systems
    .filter(({ mount }) => mount === "/" || folder === mount || folder.startsWith(`${mount}/`))
    .toSorted((a, b) => b.mount.length - a.mount.length)[0];
  return Math.floor((holding?.available ?? 0) / MEGABYTE);
}
