import { nodeOfRuntimeProvider } from "@fairlead/protocol/agents";
import { DomainError } from "@fairlead/protocol/errors";
import type { BoundCounters } from "../../../telemetry/bounds/bound-counters.ts";
import { MAX_AGENTS_PER_NODE } from "../../../telemetry/bounds/node-rate-bounds.ts";
import type { AgentHostFacts, AgentHosts } from "../../nodes/agents/agent-hosts.ts";
import { isThere } from "../life/placement.ts";
import type { AgentStore } from "../records/agent-store.ts";
import type { AgentRecord } from "./agent.ts";
import type { AgentSecretNeeds } from "./agent-secret-needs.ts";
import type { ConnectorCatalogue } from "./connectors.ts";

export interface AgentInputsDeps {
  readonly hosts: Pick<AgentHosts, "facts">;
  readonly connectors: Pick<ConnectorCatalogue, "find">;
  readonly agents: Pick<AgentStore, "countAround">;
  readonly bounds: Pick<BoundCounters, "reached">;
  readonly needs: Pick<AgentSecretNeeds, "missing">;
}

/** Validates the nodes, connectors and secrets that an agent's input refers to. */
export class AgentInputs {
  readonly #deps: AgentInputsDeps;

  constructor(deps: AgentInputsDeps) {
    this.#deps = deps;
  }

  /** @throws DomainError invalid_request if the project has no such node, or the node has the maximum number of agents */
  async hostOf(projectId: string, runtimeProvider: string): Promise<AgentHostFacts> {
    const host = await this.#deps.hosts.facts(nodeOfRuntimeProvider(runtimeProvider));
    const param = "runtimeProvider";
    if (!isThere(host) || host.projectId !== projectId) {
      throw new DomainError("invalid_request", "`runtimeProvider`: this project has no such node.", { param });
    }
    const { agents, bounds } = this.#deps;
    if ((await agents.countAround(host.nodeId)) < MAX_AGENTS_PER_NODE) return host;
    bounds.reached("agents_per_node");
    const message = `\`runtimeProvider\`: this node has the maximum of ${MAX_AGENTS_PER_NODE} agents. Choose another node.`;
    throw new DomainError("invalid_request", message, { param });
  }

  /** @throws DomainError invalid_request naming the first unknown connector */
  checkConnectors(slugs: readonly string[]): void {
    const at = slugs.findIndex((slug) => this.#deps.connectors.find(slug) === null);
    if (at < 0) return;
    const param = `connectorSlugs[${at}]`;
    const message = `\`${param}\`: there is no connector "${slugs[at]}". \`GET /v1/connectors\` lists all connectors.`;
    throw new DomainError("invalid_request", message, { param });
  }

  /** @throws DomainError missing_secrets naming all missing secrets */
  async checkSecrets(agent: AgentRecord, host: AgentHostFacts): Promise<void> {
    const missingSecrets = await this.#deps.needs.missing(agent, host);
    if (missingSecrets.length === 0) return;
    const names = missingSecrets.map(
      ({ name, connectorSlug, stale }) =>
        `${name}${connectorSlug === null ? "" : ` (connector ${connectorSlug})`}${stale ? ", which the node cannot decrypt and must be set again" : ""}`,
    );
    const message = `Set these secrets of the agent first: ${names.join("; ")}.`;
    throw new DomainError("missing_secrets", message, { missingSecrets });
  }
}

/** @throws DomainError if the node was deleted or has no daemon yet */
export function checkHost(host: AgentHostFacts | null): asserts host is AgentHostFacts {
  if (!isThere(host)) {
    const message = "The agent's node was deleted. Set another node as `runtimeProvider` first.";
    throw new DomainError("invalid_request", message, { param: "runtimeProvider" });
  }
  if (host.sealingKey === null) {
    const message = `No daemon has enrolled for node ${host.name} yet, so nothing can run on it.`;
    throw new DomainError("node_not_enrolled", message);
  }
}
