import { NodeTurns } from "../../http/limits/node-turns.ts";
import { UpgradeAdmission } from "../../http/upgrades/upgrade-admission.ts";
import type { Ground } from "../../room.ts";
import { AgentTokenService } from "../agents/access/agent-token-service.ts";
import type { AgentServices } from "../agents/agent-room.ts";
import type { AgentAccessLookup } from "../agents/life/agent-access.ts";
import type { NodeServices } from "../nodes/node-room.ts";
import { readAgentSecretKey } from "../secrets/secret-key.ts";
import type { TunnelHub } from "../tunnel/tunnel-hub.ts";
import { daemonUpgrades } from "./daemon-upgrades.ts";
import { LinkHub } from "./link-hub.ts";
import { LinkServer } from "./link-server.ts";

const LINK_RESYNC_MS = 10 * 60_000;

/** Per node, for links and for tunnels. Two daemons that share an identity take it from each other every ten seconds. */
const TURNS_OF_NODE = { burst: 10, everyMs: 2000 } as const;

/** Nodes waiting for the response to their hello: far fewer than can be served before they time out. */
const MAX_GREETING = 200;

interface LinkOptions extends Ground {
  readonly nodes: NodeServices;
  readonly agents: AgentServices;
  readonly agentAccess: AgentAccessLookup;
  readonly tunnels: TunnelHub;
}

/** A daemon's two connections: link and tunnel. */
export function openLinks({ config, log, clock, bounds, installation, nodes, agents, ...options }: LinkOptions) {
  const { agentAccess, tunnels } = options;
  const { connectsPerSecond } = config.fleet;
  const { tokens } = installation;
  const { agentSecrets } = agents;
  const { reports, liveness, changes, rates, nodeSecrets, identities } = nodes;
  const secretsOf = (key: string) => (readAgentSecretKey(key) === null ? nodeSecrets : agentSecrets);
  const hub = new LinkHub({
    reports,
    liveness,
    changes,
    secrets: { deliver: (nodeId, key) => secretsOf(key).deliver(nodeId, key) },
    agentTokens: new AgentTokenService({ tokens, nodes: identities, agents: agentAccess }),
    bounds,
    clock,
    log,
    resyncMs: LINK_RESYNC_MS,
  });
  const links = new LinkServer({ links: hub, rates, bounds, log });
  // After a server restart all daemons reconnect simultaneously.
  const admissions = {
    links: new UpgradeAdmission(connectsPerSecond, clock, () => hub.greeting >= MAX_GREETING),
    tunnels: new UpgradeAdmission(connectsPerSecond, clock),
  };
  const newTurns = () => new NodeTurns({ ...TURNS_OF_NODE, clock });
  const turns = { links: newTurns(), tunnels: newTurns() };
  // A deleted node's credential is invalid immediately, and its open connections are closed.
  changes.listen(({ aspect, nodeId }) => {
    if (aspect !== "removed") return;
    links.disconnect(nodeId);
    tunnels.disconnect(nodeId);
    liveness.forget(nodeId);
  });
  return { hub, links, admissions, upgrades: daemonUpgrades({ links, tunnels, admissions, turns, bounds }) };
}
