import { join } from "node:path";
import { systemClock } from "@fairlead/protocol/clock";
import { ImageMemory, pulledImagesSchema } from "./cleanup/image-memory.ts";
import { type Purged, purge } from "./cleanup/purge.ts";
import type { DaemonConfig } from "./config.ts";
import { createLog } from "./log.ts";
import type { DockerRuntime } from "./runtime/docker-runtime.ts";
import { EXIT, StartError } from "./start-error.ts";
import { DurableRecord } from "./state/durable-record.ts";
import { diskFiles } from "./state/files.ts";
import { IdentityStore, isEnrolled } from "./state/identity-store.ts";
import { lockStateFolder } from "./state/state-lock.ts";

/** `fairlead-daemon purge`. @throws StartError while a daemon runs on the state folder; RuntimeError of Docker. */
export async function purgeNode(
  { stateDir, logLevel }: Pick<DaemonConfig, "stateDir" | "logLevel">,
  runtime: DockerRuntime,
): Promise<Purged> {
  const { value: identity } = await new IdentityStore(diskFiles, stateDir).load();
  if (identity === null || !isEnrolled(identity)) {
    throw new StartError(EXIT.usage, `${stateDir} holds no node that was enrolled: there is nothing of it here`);
  }
  const lock = await lockStateFolder(stateDir);
  try {
    const record = new DurableRecord(diskFiles, join(stateDir, "pulled-images.json"), pulledImagesSchema);
    const memory = new ImageMemory({ record, clock: systemClock, log: createLog(logLevel) });
    await memory.load();
    const owner = { installationId: identity.enrolled.installationId, nodeId: identity.nodeId };
    const purged = await purge({ runtime, owner, memory });
    await memory.close();
    return purged;
  } finally {
    await lock.release();
  }
}

export function purgedText({ containers, images, leftVolumes, leftImages }: Purged): string {
  return [
    `containers removed: ${containers.join(", ") || "none"}`,
    `images removed: ${images.join(", ") || "none"}`,
    ...leftVolumes.map((name) => `volume ${name} stays: somebody else uses it`),
    ...leftImages.map((name) => `image ${name} stays: somebody else uses it`),
  ].join("\n");
}
