import { LINK_PATH, TUNNEL_PATH, TUNNEL_PROTOCOL_HEADER, TUNNEL_UPGRADE } from "@fairlead/protocol/daemon-link";
import { DomainError } from "@fairlead/protocol/errors";
import type { UpgradeAdmission } from "../http/upgrade-admission.ts";
import type { AcceptedUpgrade, NodeUpgradeRoute, UpgradeProtocol } from "../http/upgrade-dispatcher.ts";
import type { LinkServer } from "./link-server.ts";

interface TunnelOffer extends Pick<AcceptedUpgrade, "socket" | "head"> {
  /** As the daemon sent it. */
  readonly protocols: string | undefined;
}

/** Takes a node's raw socket and makes it the tunnel; the tunnel hub. */
export interface TunnelAcceptor {
  attach(nodeId: string, offer: TunnelOffer): void;
}

/** How many of each are opened within a second. */
export interface DaemonAdmissions {
  readonly links: UpgradeAdmission;
  readonly tunnels: UpgradeAdmission;
}

export interface DaemonUpgradeDeps {
  readonly links: Pick<LinkServer, "accept">;
  readonly tunnels: TunnelAcceptor;
  readonly admissions: DaemonAdmissions;
}

/** The two connections that a daemon opens. Both are its own node's only. */
export function daemonUpgrades({ links, tunnels, admissions }: DaemonUpgradeDeps): NodeUpgradeRoute[] {
  const link = { protocol: "websocket", pathOf: LINK_PATH, admission: admissions.links } as const;
  const tunnel = { protocol: TUNNEL_UPGRADE, pathOf: TUNNEL_PATH, admission: admissions.tunnels } as const;
  return [
    upgradeRoute(link, ({ request, socket, head, principal }) =>
      links.accept({ request, socket, head, nodeId: principal.nodeId }),
    ),
    upgradeRoute(tunnel, ({ request, socket, head, principal }) => {
      const offered = request.headers[TUNNEL_PROTOCOL_HEADER];
      tunnels.attach(principal.nodeId, { socket, head, protocols: offered?.toString() });
    }),
  ];
}

interface Door {
  readonly protocol: UpgradeProtocol;
  readonly pathOf: (nodeId: string) => string;
  readonly admission: UpgradeAdmission;
}

function upgradeRoute(
  { protocol, pathOf, admission }: Door,
  accept: (upgrade: AcceptedUpgrade) => void,
): NodeUpgradeRoute {
  const [before = "", after = ""] = pathOf("\0").split("\0");
  return {
    for: "node",
    protocol,
    admit: () => admission.admit(),
    match: (path) => {
      if (!path.startsWith(before) || !path.endsWith(after)) return null;
      const id = path.slice(before.length, path.length - after.length);
      return id === "" || id.includes("/") ? null : { id };
    },
    handle: (upgrade) => {
      if (upgrade.params["id"] !== upgrade.principal.nodeId) {
        throw new DomainError("not_found", "This node's credential opens only its own connections.");
      }
      accept(upgrade);
    },
  };
}
