import type { MissingSecret } from "@fairlead/protocol/errors";
import type { AgentHostFacts } from "../../nodes/agents/agent-hosts.ts";
import type { SecretService } from "../../secrets/secret-service.ts";
import { agentSecretOwner } from "../access/agent-secret-owners.ts";
import type { AgentRecord } from "./agent.ts";
import { agentNeeds } from "./agent-needs.ts";
import type { ConnectorCatalogue } from "./connectors.ts";

export interface AgentSecretNeedsDeps {
  readonly secrets: Pick<SecretService, "list">;
  readonly connectors: Pick<ConnectorCatalogue, "known">;
}

/** What agents need of secrets, against what they have. */
export class AgentSecretNeeds {
  readonly #deps: AgentSecretNeedsDeps;

  constructor(deps: AgentSecretNeedsDeps) {
    this.#deps = deps;
  }

  /** Those that it cannot start without on that node: not set, or not to be opened there. Each once. */
  async missing(agent: AgentRecord, host: AgentHostFacts): Promise<readonly MissingSecret[]> {
    const { secrets, connectors } = this.#deps;
    const held = new Map((await secrets.list(agentSecretOwner(agent, host))).map((secret) => [secret.name, secret]));
    const needs = new Map(
      agentNeeds(agent, connectors.known(agent.connectorSlugs)).map(({ name, connector }) => [name, connector]),
    );
    return [...needs].flatMap(([name, connectorSlug]) => {
      const secret = held.get(name);
      return secret === undefined || secret.stale ? [{ name, connectorSlug, stale: secret !== undefined }] : [];
    });
  }
}
