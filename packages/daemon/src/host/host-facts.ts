import { cpus, hostname } from "node:os";
import { type HostFacts, MAX_GPUS } from "@fairlead/protocol/daemon-link";
import { cutText } from "@fairlead/protocol/values/text";
import { mem, osInfo } from "systeminformation";
import type { ContainerRuntime } from "../runtime/container-runtime.ts";
import { readDiskSpace } from "./disk.ts";
import { readGpus } from "./gpus.ts";

/** The control plane's length limit. */
const MAX_TEXT = 256;
const MAX_WORD = 64;
const MEGABYTE = 1024 * 1024;

export type StaticFacts = Omit<HostFacts, "diskFreeMb" | "dockerVersion" | "gpus">;

/** Facts that do not change while the daemon runs. */
export async function readStaticFacts(): Promise<StaticFacts> {
  const [system, memory] = await Promise.all([osInfo(), mem()]);
  return {
    operatingSystem: cutText(`${system.distro} ${system.release}`.trim() || system.platform, MAX_TEXT),
    kernel: cutText(system.kernel, MAX_TEXT),
    architecture: cutText(system.arch, MAX_WORD),
    hostName: cutText(hostname(), MAX_TEXT),
    cpus: cpus().length,
    memoryMb: Math.floor(memory.total / MEGABYTE),
  };
}

/** The machine facts in each hello; unknown values are "" or 0. */
export async function readHostFacts(
  facts: StaticFacts,
  runtime: Pick<ContainerRuntime, "version">,
): Promise<HostFacts> {
  const engine = await runtime.version().catch(() => ({ id: "", version: "", rootFolder: "/", usesProxy: false }));
  const [space, reading] = await Promise.all([readDiskSpace(engine.rootFolder), readGpus()]);
  const gpus = reading.state === "present" ? reading.gpus.slice(0, MAX_GPUS) : [];
  const diskFreeMb = Math.floor((space?.freeBytes ?? 0) / MEGABYTE);
  return { ...facts, diskFreeMb, dockerVersion: cutText(engine.version, MAX_WORD), gpus };
}
