import { GATEWAY_PATH } from "@fairlead/protocol/workload-connect";

/** Which requests are the relay's, and what of their path is the workload's own. Pure. */

export interface RelayedPath {
  readonly nodeId: string;
  /** Path and query for the workload, byte for byte as the caller sent them. */
  readonly path: string;
}

const [BEFORE_ID = "", AFTER_ID = ""] = GATEWAY_PATH("\0").split("\0");

/**
 * Nothing is decoded or tidied: `..`, `%2f` and `//` are the workload's to judge, and since it is handed what follows the prefix,
 * none of them leads out of it.
 * @param path the request line's target, a path and a query. @returns null for a path that is not the relay's
 */
export function relayedPath(path: string): RelayedPath | null {
  if (!path.startsWith(BEFORE_ID)) return null;
  const idEnd = path.indexOf("/", BEFORE_ID.length);
  if (idEnd <= BEFORE_ID.length || !path.startsWith(AFTER_ID, idEnd)) return null;
  const nodeId = path.slice(BEFORE_ID.length, idEnd);
  const rest = path.slice(idEnd + AFTER_ID.length);
  if (rest.startsWith("/")) return { nodeId, path: rest };
  // `…/gateway` alone is the workload's root.
  return rest === "" || rest.startsWith("?") ? { nodeId, path: `/${rest}` } : null;
}
