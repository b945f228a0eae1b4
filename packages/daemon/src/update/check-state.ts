import type { DaemonConfig } from "../process/config.ts";
import { DaemonStartError, EXIT } from "../process/start-error.ts";
import { DesiredStore } from "../state/desired-store.ts";
import type { FileLayer } from "../state/files.ts";
import { IdentityStore, isEnrolled } from "../state/identity-store.ts";

/**
 * Checks whether this version can use the state folder. Reads the essential files, changes nothing, takes no
 * lock. @returns a one-line summary. @throws StartError that names what cannot be read
 */
export async function checkState(files: FileLayer, { stateDir }: Pick<DaemonConfig, "stateDir">): Promise<string> {
  const { value: identity } = await new IdentityStore(files, stateDir).load();
  if (identity === null) throw unreadable(stateDir, "the node's identity");
  if (!isEnrolled(identity)) return `node ${identity.nodeId}, not enrolled yet`;
  const desired = new DesiredStore(files, { folder: stateDir, nodeId: identity.nodeId });
  const { damaged } = await desired.load();
  const state = desired.current();
  // One damaged copy is repaired with the next change.
  if (damaged && state === null) throw unreadable(stateDir, "the desired state");
  return `node ${identity.nodeId}, generation ${state?.generation ?? "none"}`;
}

function unreadable(stateDir: string, what: string): DaemonStartError {
  return new DaemonStartError(EXIT.fault, `${stateDir}: ${what} is missing or cannot be read by this version`);
}
