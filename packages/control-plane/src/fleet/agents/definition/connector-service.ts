import type { Connector } from "@fairlead/protocol/agents";
import type { ProjectAccess } from "../../../access/auth/access.ts";
import type { UserPrincipal } from "../../../access/auth/principal.ts";
import type { ConnectorCatalogue } from "./connectors.ts";

export interface ConnectorServiceDeps {
  readonly connectors: ConnectorCatalogue;
  readonly access: ProjectAccess;
}

/** The catalogue of connectors, for members of projects. */
export class ConnectorService {
  readonly #deps: ConnectorServiceDeps;

  constructor(deps: ConnectorServiceDeps) {
    this.#deps = deps;
  }

  /** By slug; the same for every project so far. @throws DomainError not_found */
  async list(caller: UserPrincipal, projectId: string): Promise<readonly Connector[]> {
    await this.#deps.access.require(caller, projectId, "agent.read");
    return this.#deps.connectors.list();
  }
}
