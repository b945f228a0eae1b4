import { rfc3339 } from "@fairlead/protocol/clock";
import type { DaemonBuild } from "@fairlead/protocol/daemon-builds";
import { agreedVersion, PROTOCOL_VERSIONS } from "@fairlead/protocol/daemon-link";
import type { WantedDaemon } from "@fairlead/protocol/daemon-updates";
import { DomainError } from "@fairlead/protocol/errors";

/** Which daemon version a node is to run. Pure. */

export const DAEMON_SCOPES = ["node", "project", "fleet"] as const;
export type DaemonScope = (typeof DAEMON_SCOPES)[number];

/** Whose daemons are meant. */
export type DaemonTarget =
  | { readonly scope: "node"; readonly nodeId: string; readonly projectId: string }
  | { readonly scope: "project"; readonly projectId: string }
  | { readonly scope: "fleet" };

export interface DesiredDaemon {
  readonly target: DaemonTarget;
  readonly version: string;
  /** Unix milliseconds. Asked again for the same version, it is another request. */
  readonly requestedAt: number;
}

/** At most so long a whole fleet takes to begin. */
const MAX_SPREAD_SECONDS = 600;

/** The node's own goes before its project's, and that before the fleet's. @param desired of this node, its project and the fleet, or fewer */
export function mostSpecific(desired: readonly DesiredDaemon[]): DesiredDaemon | null {
  for (const scope of DAEMON_SCOPES) {
    const found = desired.find(({ target }) => target.scope === scope);
    if (found !== undefined) return found;
  }
  return null;
}

/** For several nodes of one project. @param desired what counts for them */
export function desiredVersionOf(node: { readonly id: string }, desired: readonly DesiredDaemon[]): string | null {
  const meant = desired.filter(({ target }) => target.scope !== "node" || target.nodeId === node.id);
  return mostSpecific(meant)?.version ?? null;
}

/** @throws DomainError invalid_request where nobody could run it */
export function requireUsable(builds: readonly DaemonBuild[], version: string): void {
  const build = builds.find((offered) => offered.version === version);
  if (build === undefined) {
    const offered = builds.map((other) => other.version).join(", ") || "none";
    throw unusable(`no build of the daemon in this version is offered; there are: ${offered}`);
  }
  if (agreedVersion(PROTOCOL_VERSIONS, build.protocolVersions) !== null) return;
  const [ours, theirs] = [PROTOCOL_VERSIONS.join(", "), build.protocolVersions.join(", ")];
  throw unusable(`that daemon speaks version ${theirs} of the daemon link, and this server ${ours}`);
}

/** What the daemon is told. @param nodes how many are meant by the same word */
export function toWantedDaemon(desired: DesiredDaemon, build: DaemonBuild, nodes: number): WantedDaemon {
  const { version, files } = build;
  return {
    version,
    request: `${desired.target.scope}:${desired.requestedAt}`,
    files: files.map(({ arch, file, sha256, bytes }) => ({ arch, path: `/v1/daemon-builds/${file}`, sha256, bytes })),
    // One node a second.
    spreadSeconds: Math.min(MAX_SPREAD_SECONDS, Math.max(0, nodes - 1)),
  };
}

export interface DesiredDaemonView {
  readonly version: string | null;
  readonly requestedAt: string | null;
  readonly effective: { readonly version: string; readonly scope: DaemonScope } | null;
}

/** @param desired what counts for the target, its own among it where there is one */
export function toDesiredDaemonView(scope: DaemonScope, desired: readonly DesiredDaemon[]): DesiredDaemonView {
  const own = desired.find(({ target }) => target.scope === scope);
  const effective = mostSpecific(desired);
  return {
    version: own?.version ?? null,
    requestedAt: own === undefined ? null : rfc3339(own.requestedAt),
    effective: effective && { version: effective.version, scope: effective.target.scope },
  };
}

function unusable(why: string): DomainError {
  return new DomainError("invalid_request", `\`version\`: ${why}.`, { param: "version" });
}
