import type { AgentActionsService } from "./life/agent-actions-service.ts";
import type { AgentStores } from "./records/agent-stores.ts";

export interface AgentRemovalDeps {
  readonly stores: Pick<AgentStores, "agents">;
  readonly life: Pick<AgentActionsService, "remove">;
}

const PAGE = 100;
const WHO = "The deletion of its project";

/** Ends the agents of a project that is being deleted. */
export class AgentRemovalService {
  readonly #deps: AgentRemovalDeps;

  constructor(deps: AgentRemovalDeps) {
    this.#deps = deps;
  }

  /** Asks all of them to end; what still runs of them ends with their nodes. May be called again after it broke off. @throws AbortError by `stop` */
  async endAll(projectId: string, stop: AbortSignal): Promise<void> {
    const { stores, life } = this.#deps;
    let after: string | null = null;
    do {
      const agents = await stores.agents.list(projectId, { limit: PAGE, after });
      for (const { id } of agents) {
        stop.throwIfAborted();
        const actor = { kind: "system", name: "server" } as const;
        await life.remove(id, { actor, detail: { because: "project.delete" } }, WHO);
      }
      after = agents.at(-1)?.id ?? null;
    } while (after !== null);
  }
}
