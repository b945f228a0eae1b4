import { rm } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "@fairlead/protocol/values/clock";
import { ImageMemory, pulledImagesSchema } from "./cleanup/image-memory.ts";
import { type Purged, purge } from "./cleanup/purge.ts";
import { removeNetworkRules } from "./host/workload-networks.ts";
import type { DaemonConfig } from "./process/config.ts";
import { createDaemonLog } from "./process/log.ts";
import { DaemonStartError, EXIT } from "./process/start-error.ts";
import type { DockerRuntime } from "./runtime/docker/docker-runtime.ts";
import { DurableRecord } from "./state/durable-record.ts";
import { diskFiles } from "./state/files.ts";
import { IdentityStore, isEnrolled } from "./state/identity-store.ts";
import { lockStateFolder } from "./state/state-lock.ts";

/** `fairlead-daemon purge`. @throws StartError while a daemon uses the state folder; RuntimeError from Docker. */
export async function purgeNode(
  { stateDir, runtimeDir, logLevel }: Pick<DaemonConfig, "stateDir" | "runtimeDir" | "logLevel">,
  runtime: DockerRuntime,
): Promise<Purged> {
  const { value: identity } = await new IdentityStore(diskFiles, stateDir).load();
  if (identity === null || !isEnrolled(identity)) {
    throw new DaemonStartError(EXIT.usage, `there is no enrolled node in ${stateDir}: nothing to remove`);
  }
  const lock = await lockStateFolder(stateDir);
  try {
    const record = new DurableRecord(diskFiles, join(stateDir, "pulled-images.json"), pulledImagesSchema);
    const memory = new ImageMemory({ record, clock: systemClock, log: createDaemonLog(logLevel) });
    await memory.load();
    const owner = { installationId: identity.enrolled.installationId, nodeId: identity.nodeId };
    const purged = await purge({ runtime, owner, memory });
    await removeNetworkRules(runtime, owner);
    await runtime.removeHelperImage();
    await memory.close();
    await rm(join(runtimeDir, "secrets", identity.nodeId), { recursive: true, force: true });
    return purged;
  } finally {
    await lock.release();
  }
}

export function purgedText({ containers, images, leftVolumes, leftImages }: Purged): string {
  return [
    `containers removed: ${containers.join(", ") || "none"}`,
    `images removed: ${images.join(", ") || "none"}`,
    ...leftVolumes.map((name) => `kept volume ${name}: in use elsewhere`),
    ...leftImages.map((name) => `kept image ${name}: in use elsewhere`),
  ].join("\n");
}
