import type { ReportedNodeEvent } from "@fairlead/protocol/daemon-link";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { IdSource } from "@fairlead/protocol/values/ids";
import type { AgentHistories } from "../../nodes/desired/agents-on-node.ts";
import type { EventRooms } from "../../nodes/records/event-rooms.ts";
import type { AgentStores } from "./agent-stores.ts";

export interface AgentHistoryDeps {
  readonly stores: Pick<AgentStores, "agents" | "events">;
  readonly rooms: Pick<EventRooms, "open" | "take">;
  readonly clock: Clock;
  readonly ids: IdSource;
}

/** Daemons' events about agents' workloads: why one was stopped, restarted or rolled back. */
export class AgentHistory implements AgentHistories {
  readonly #deps: AgentHistoryDeps;

  constructor(deps: AgentHistoryDeps) {
    this.#deps = deps;
  }

  async take(nodeId: string, events: readonly ReportedNodeEvent[]): Promise<void> {
    if (events.every(({ workloadId }) => workloadId === null)) return;
    const { stores, rooms, clock, ids } = this.#deps;
    await rooms.open(nodeId);
    // A node can only add to the history of agents placed on it.
    const here = new Set((await stores.agents.placedOn(nodeId)).map(({ id }) => id));
    const theirs = events.flatMap(({ workloadId, ...event }) =>
      workloadId === null || !here.has(workloadId) ? [] : { ...event, agentId: workloadId },
    );
    const kept = theirs.slice(0, rooms.take(nodeId, theirs.length));
    await stores.events.append(
      kept.map(({ id, kind, message, agentId }) => ({
        id: ids.next("event"),
        sourceId: `${nodeId}.${id}`,
        agentId,
        at: clock.now(),
        kind,
        lifecycleState: null,
        message,
      })),
    );
  }
}
