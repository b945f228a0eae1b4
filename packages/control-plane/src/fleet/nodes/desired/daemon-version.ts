import type { DaemonBuild } from "@fairlead/protocol/daemon-builds";
import { agreedVersion, PROTOCOL_VERSIONS } from "@fairlead/protocol/daemon-link";
import type { WantedDaemon } from "@fairlead/protocol/daemon-updates";
import { DomainError } from "@fairlead/protocol/errors";
import { rfc3339 } from "@fairlead/protocol/values/clock";

/** The requested daemon version of a node. Pure. */

export const DAEMON_SCOPES = ["node", "project", "fleet"] as const;
export type DaemonScope = (typeof DAEMON_SCOPES)[number];

/** The daemons that a request applies to. */
export type DaemonTarget =
  | { readonly scope: "node"; readonly nodeId: string; readonly projectId: string }
  | { readonly scope: "project"; readonly projectId: string }
  | { readonly scope: "fleet" };

export interface DaemonVersionSetting {
  readonly target: DaemonTarget;
  readonly version: string;
  /** Unix milliseconds. Repeating a request creates a new one. */
  readonly requestedAt: number;
}

/** Maximum time over which a fleet's updates start. */
const MAX_SPREAD_SECONDS = 600;

/** Precedence: node, project, fleet. @param desired the requests that apply to this node */
export function mostSpecific(desired: readonly DaemonVersionSetting[]): DaemonVersionSetting | null {
  for (const scope of DAEMON_SCOPES) {
    const found = desired.find(({ target }) => target.scope === scope);
    if (found !== undefined) return found;
  }
  return null;
}

/** For several nodes of one project. @param desired the requests that apply to them */
export function desiredVersionOf(
  node: { readonly id: string },
  desired: readonly DaemonVersionSetting[],
): string | null {
  const meant = desired.filter(({ target }) => target.scope !== "node" || target.nodeId === node.id);
  return mostSpecific(meant)?.version ?? null;
}

/** @throws DomainError invalid_request for an unusable version */
export function requireUsable(builds: readonly DaemonBuild[], version: string): void {
  const build = builds.find((offered) => offered.version === version);
  if (build === undefined) {
    const offered = builds.map((other) => other.version).join(", ") || "none";
    throw unusable(`there is no daemon build of this version; available versions: ${offered}`);
  }
  if (agreedVersion(PROTOCOL_VERSIONS, build.protocolVersions) !== null) return;
  const [ours, theirs] = [PROTOCOL_VERSIONS.join(", "), build.protocolVersions.join(", ")];
  throw unusable(`that daemon supports version ${theirs} of the daemon link, but this server supports ${ours}`);
}

/** The message to the daemon. @param nodes number of nodes of the request */
export function toWantedDaemon(desired: DaemonVersionSetting, build: DaemonBuild, nodes: number): WantedDaemon {
  const { version, files } = build;
  return {
    version,
    request: `${desired.target.scope}:${desired.requestedAt}`,
    files: files.map(({ arch, file, sha256, bytes }) => ({ arch, path: `/v1/daemon-builds/${file}`, sha256, bytes })),
    // One node a second.
    spreadSeconds: Math.min(MAX_SPREAD_SECONDS, Math.max(0, nodes - 1)),
  };
}

export interface DaemonVersionView {
  readonly version: string | null;
  readonly requestedAt: string | null;
  readonly effective: { readonly version: string; readonly scope: DaemonScope } | null;
}

/** @param desired the requests that apply to the target, including its own */
export function toDaemonVersionView(scope: DaemonScope, desired: readonly DaemonVersionSetting[]): DaemonVersionView {
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
