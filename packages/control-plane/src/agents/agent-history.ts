import type { Clock } from "@fairlead/protocol/clock";
import type { NodeEvent } from "@fairlead/protocol/daemon-link";
import type { IdSource } from "@fairlead/protocol/ids";
import type { AgentHistories } from "../nodes/agents-on-node.ts";
import type { AgentStores } from "./agent-stores.ts";

export interface AgentHistoryDeps {
  readonly stores: Pick<AgentStores, "agents" | "events">;
  readonly clock: Clock;
  readonly ids: IdSource;
}

/** What daemons tell of agents' workloads: why one was stopped, started anew or rolled back. */
export class AgentHistory implements AgentHistories {
  readonly #deps: AgentHistoryDeps;

  constructor(deps: AgentHistoryDeps) {
    this.#deps = deps;
  }

  async take(nodeId: string, events: readonly NodeEvent[]): Promise<void> {
    if (events.every(({ workloadId }) => workloadId === null)) return;
    const { stores, clock, ids } = this.#deps;
    // A node has no say in the histories of others' agents.
    const here = new Set((await stores.agents.placedOn(nodeId)).map(({ id }) => id));
    await stores.events.append(
      events.flatMap(({ id, kind, message, workloadId }) =>
        workloadId === null || !here.has(workloadId)
          ? []
          : {
              id: ids.next("event"),
              sourceId: `${nodeId}.${id}`,
              agentId: workloadId,
              at: clock.now(),
              kind,
              lifecycleState: null,
              message,
            },
      ),
    );
  }
}
