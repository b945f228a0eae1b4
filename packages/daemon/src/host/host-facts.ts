import { cpus, hostname } from "node:os";
import type { HostFacts } from "@fairlead/protocol/daemon-link";
import { mem, osInfo } from "systeminformation";
import type { ContainerRuntime } from "../runtime/container-runtime.ts";
import { readDiskSpace } from "./disk.ts";
import { readGpus } from "./gpus.ts";

const MEGABYTE = 1024 * 1024;

export type StaticFacts = Omit<HostFacts, "diskFreeMb" | "dockerVersion" | "gpus">;

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

/** All that is told of the machine at each hello; what cannot be read is "" or 0. */
export async function readHostFacts(
  facts: StaticFacts,
  runtime: Pick<ContainerRuntime, "version">,
): Promise<HostFacts> {
  const engine = await runtime.version().catch(() => ({ version: "", rootFolder: "/" }));
  const [space, reading] = await Promise.all([readDiskSpace(engine.rootFolder), readGpus()]);
  const gpus = reading.state === "present" ? [...reading.gpus] : [];
  const diskFreeMb = Math.floor((space?.freeBytes ?? 0) / MEGABYTE);
  return { ...facts, diskFreeMb, dockerVersion: engine.version, gpus };
}
