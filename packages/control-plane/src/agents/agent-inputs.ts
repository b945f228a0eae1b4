import { nodeOfRuntimeProvider } from "@fairlead/protocol/agents";
import { DomainError } from "@fairlead/protocol/errors";
import type { AgentHosts, HostFacts } from "../nodes/agent-hosts.ts";
import type { AgentRecord } from "./agent.ts";
import type { AgentSecretNeeds } from "./agent-secret-needs.ts";
import type { ConnectorCatalogue } from "./connectors.ts";
import { isThere } from "./placement.ts";

export interface AgentInputsDeps {
  readonly hosts: Pick<AgentHosts, "facts">;
  readonly connectors: Pick<ConnectorCatalogue, "find">;
  readonly needs: Pick<AgentSecretNeeds, "missing">;
}

/** Judges what people write of an agent by what it names: its node, its connectors, its secrets. */
export class AgentInputs {
  readonly #deps: AgentInputsDeps;

  constructor(deps: AgentInputsDeps) {
    this.#deps = deps;
  }

  /** @throws DomainError invalid_request where the project has no such node */
  async hostOf(projectId: string, runtimeProvider: string): Promise<HostFacts> {
    const host = await this.#deps.hosts.facts(nodeOfRuntimeProvider(runtimeProvider));
    if (isThere(host) && host.projectId === projectId) return host;
    const message = "`runtimeProvider`: there is no such node in this project.";
    throw new DomainError("invalid_request", message, { param: "runtimeProvider" });
  }

  /** @throws DomainError invalid_request naming the first that the catalogue does not have */
  checkConnectors(slugs: readonly string[]): void {
    const at = slugs.findIndex((slug) => this.#deps.connectors.find(slug) === null);
    if (at < 0) return;
    const param = `connectorSlugs[${at}]`;
    const message = `\`${param}\`: there is no connector "${slugs[at]}"; \`GET /v1/connectors\` lists those that there are.`;
    throw new DomainError("invalid_request", message, { param });
  }

  /** @throws DomainError missing_secrets naming all of them */
  async checkSecrets(agent: AgentRecord, host: HostFacts): Promise<void> {
    const missingSecrets = await this.#deps.needs.missing(agent, host);
    if (missingSecrets.length === 0) return;
    const names = missingSecrets.map(
      ({ name, connectorSlug, stale }) =>
        `${name}${connectorSlug === null ? "" : ` (connector ${connectorSlug})`}${stale ? ", which its node cannot open: set it again" : ""}`,
    );
    const message = `Set these secrets of the agent first: ${names.join("; ")}.`;
    throw new DomainError("missing_secrets", message, { missingSecrets });
  }
}

/** @throws DomainError where nothing of an agent could run there: no node any more, no daemon yet, or one that is too old */
export function checkHost(host: HostFacts | null): asserts host is HostFacts {
  if (!isThere(host)) {
    const message = "The agent's node was deleted: give it another as `runtimeProvider` first.";
    throw new DomainError("invalid_request", message, { param: "runtimeProvider" });
  }
  if (host.sealingKey === null) {
    const message = `No daemon has enrolled for node ${host.name} yet, so nothing runs on it.`;
    throw new DomainError("node_not_enrolled", message);
  }
  if (host.runsAgents) return;
  const message = `The daemon of node ${host.name} is too old to run agents: update it, see \`fairlead node update-daemon\`.`;
  throw new DomainError("daemon_too_old", message);
}
