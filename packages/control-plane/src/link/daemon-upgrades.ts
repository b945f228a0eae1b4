import { LINK_PATH, TUNNEL_PATH, TUNNEL_UPGRADE } from "@fairlead/protocol/daemon-link";
import { DomainError } from "@fairlead/protocol/errors";
import type { AcceptedUpgrade, NodeUpgradeRoute, UpgradeProtocol } from "../http/upgrade-dispatcher.ts";
import type { LinkServer } from "./link-server.ts";

/** Takes a node's raw socket and makes it the tunnel; the tunnel hub. */
export interface TunnelAcceptor {
  attach(nodeId: string, socket: AcceptedUpgrade["socket"], head: Buffer): void;
}

/** The two connections that a daemon opens. Both are its own node's only. */
export function daemonUpgrades(links: Pick<LinkServer, "accept">, tunnels: TunnelAcceptor): NodeUpgradeRoute[] {
  return [
    upgradeRoute("websocket", LINK_PATH, ({ request, socket, head, principal }) =>
      links.accept({ request, socket, head, nodeId: principal.nodeId }),
    ),
    upgradeRoute(TUNNEL_UPGRADE, TUNNEL_PATH, ({ socket, head, principal }) =>
      tunnels.attach(principal.nodeId, socket, head),
    ),
  ];
}

function upgradeRoute(
  protocol: UpgradeProtocol,
  pathOf: (nodeId: string) => string,
  accept: (upgrade: AcceptedUpgrade) => void,
): NodeUpgradeRoute {
  const [before = "", after = ""] = pathOf("\0").split("\0");
  return {
    for: "node",
    protocol,
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
