import type { DaemonConfig } from "../config.ts";
import { EXIT, StartError } from "../start-error.ts";
import { DesiredStore } from "../state/desired-store.ts";
import type { FileLayer } from "../state/files.ts";
import { IdentityStore, isEnrolled } from "../state/identity-store.ts";

/**
 * Whether this program can take over what lies in the state folder: reads what a node cannot do without, changes nothing, takes no
 * lock. @returns what there is, in one line. @throws StartError that names what cannot be read
 */
export async function checkState(files: FileLayer, { stateDir }: Pick<DaemonConfig, "stateDir">): Promise<string> {
  const { value: identity } = await new IdentityStore(files, stateDir).load();
  if (identity === null) throw unreadable(stateDir, "the node's identity");
  if (!isEnrolled(identity)) return `node ${identity.nodeId}, not enrolled yet`;
  const desired = new DesiredStore(files, { folder: stateDir, nodeId: identity.nodeId });
  const { damaged } = await desired.load();
  const state = desired.current();
  // One damaged copy of two is mended with the next change.
  if (damaged && state === null) throw unreadable(stateDir, "the desired state");
  return `node ${identity.nodeId}, generation ${state?.generation ?? "none yet"}`;
}

function unreadable(stateDir: string, what: string): StartError {
  return new StartError(EXIT.fault, `${stateDir}: ${what} is missing, or cannot be read by this version`);
}
