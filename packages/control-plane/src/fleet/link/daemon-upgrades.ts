import { LINK_PATH, TUNNEL_PATH, TUNNEL_UPGRADE } from "@fairlead/protocol/daemon-link";
import { DomainError } from "@fairlead/protocol/errors";
import type { NodeTurns } from "../../http/limits/node-turns.ts";
import type { UpgradeAdmission } from "../../http/upgrades/upgrade-admission.ts";
import type {
  AcceptedUpgrade,
  NodeUpgradeRoute,
  UpgradeProtocol,
  VerifiedCaller,
} from "../../http/upgrades/upgrade-dispatcher.ts";
import type { BoundCounters } from "../../telemetry/bounds/bound-counters.ts";
import type { LinkServer } from "./link-server.ts";

/** The tunnel hub, which turns a node's raw socket into the tunnel. */
export interface TunnelAcceptor {
  attach(nodeId: string, upgrade: Pick<AcceptedUpgrade, "socket" | "head">): void;
}

/** Connections opened per second, of each kind. */
export interface DaemonAdmissions {
  readonly links: UpgradeAdmission;
  readonly tunnels: UpgradeAdmission;
}

/** Connections that one node may open, of each kind. */
export interface DaemonTurns {
  readonly links: NodeTurns;
  readonly tunnels: NodeTurns;
}

export interface DaemonUpgradeDeps {
  readonly links: Pick<LinkServer, "accept">;
  readonly tunnels: TunnelAcceptor;
  readonly admissions: DaemonAdmissions;
  readonly turns: DaemonTurns;
  readonly bounds: Pick<BoundCounters, "reached">;
}

/** The two connections of a daemon, only for its own node. */
export function daemonUpgrades({ links, tunnels, admissions, turns, bounds }: DaemonUpgradeDeps): NodeUpgradeRoute[] {
  const link: Door = {
    protocol: "websocket",
    pathOf: LINK_PATH,
    admission: admissions.links,
    turns: turns.links,
    onTooOften: () => bounds.reached("links_of_node"),
  };
  const tunnel: Door = {
    protocol: TUNNEL_UPGRADE,
    pathOf: TUNNEL_PATH,
    admission: admissions.tunnels,
    turns: turns.tunnels,
    onTooOften: () => bounds.reached("tunnels_of_node"),
  };
  return [
    upgradeRoute(link, ({ request, socket, head, principal }) =>
      links.accept({ request, socket, head, nodeId: principal.nodeId }),
    ),
    upgradeRoute(tunnel, ({ socket, head, principal }) => tunnels.attach(principal.nodeId, { socket, head })),
  ];
}

interface Door {
  readonly protocol: UpgradeProtocol;
  readonly pathOf: (nodeId: string) => string;
  readonly admission: UpgradeAdmission;
  readonly turns: NodeTurns;
  readonly onTooOften: () => void;
}

function upgradeRoute(
  { protocol, pathOf, ...door }: Door,
  accept: (upgrade: AcceptedUpgrade) => void,
): NodeUpgradeRoute {
  const [before = "", after = ""] = pathOf("\0").split("\0");
  return {
    for: "node",
    protocol,
    admit: (caller) => admit(door, caller),
    match: (path) => {
      if (!path.startsWith(before) || !path.endsWith(after)) return null;
      const id = path.slice(before.length, path.length - after.length);
      return id === "" || id.includes("/") ? null : { id };
    },
    handle: accept,
  };
}

/** The node's limit is checked first and charged last. */
function admit(
  { admission, turns, onTooOften }: Pick<Door, "admission" | "turns" | "onTooOften">,
  { params, principal: { nodeId } }: VerifiedCaller,
): void {
  if (params["id"] !== nodeId) {
    throw new DomainError("not_found", "This credential belongs to a different node.");
  }
  try {
    turns.check(nodeId);
  } catch (error) {
    onTooOften();
    throw error;
  }
  admission.admit();
  turns.spend(nodeId);
}
