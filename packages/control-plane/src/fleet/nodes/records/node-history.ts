import { growingCache } from "@fairlead/hosting/growing-cache";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { IdSource } from "@fairlead/protocol/values/ids";
import type { BoundCounters } from "../../../telemetry/bounds/bound-counters.ts";
import { EventRooms } from "./event-rooms.ts";
import type { NodeEventRecord, NodeEventStore } from "./node-event-store.ts";

export interface NodeHistoryDeps {
  readonly events: NodeEventStore;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly bounds: Pick<BoundCounters, "reached">;
  /** Maximum rows written by one node's reports. */
  readonly maxRows: number;
}

/** Dropped rows, and how many are already recorded. */
interface Dropped {
  readonly since: number;
  rows: number;
  told: number;
}

const MAX_NODES = 100_000;
const HOUR_MS = 3_600_000;

/**
 * Limits the rows that a node's reports write to its history. Beyond the limit, new rows are dropped and one row records how many. Rows
 * caused by users are always kept and count as well.
 */
export class NodeHistory {
  readonly #deps: NodeHistoryDeps;
  readonly #rooms: EventRooms;
  readonly #dropped = growingCache<Dropped>(MAX_NODES);

  constructor(deps: NodeHistoryDeps) {
    this.#deps = deps;
    const { events, clock, maxRows } = deps;
    this.#rooms = new EventRooms({
      count: (nodeId, limit) => events.count(nodeId, limit),
      maxRows,
      clock,
      onDropped: (nodeId, rows) => this.#drop(nodeId, rows),
    });
  }

  /** Before `take`, outside a transaction. */
  open(nodeId: string): Promise<void> {
    return this.#rooms.open(nodeId);
  }

  /** @returns how many of these rows may be written; the rest counts as dropped. */
  take(nodeId: string, wanted: number): number {
    return this.#rooms.take(nodeId, wanted);
  }

  /** After `take`, outside a transaction: records the dropped rows. */
  async settle(nodeId: string): Promise<void> {
    const dropped = this.#dropped.get(nodeId);
    if (dropped === undefined || dropped.rows === dropped.told) return;
    dropped.told = dropped.rows;
    const message = `${dropped.rows} events were dropped because the history of this node is full (${this.#deps.maxRows} events).`;
    const sourceId = `${nodeId}.events_dropped.${dropped.since}`;
    await this.#deps.events.replace({ ...this.#event(nodeId, "events_dropped", message), sourceId });
  }

  /** The node exceeded its link's limits: at most one event an hour. */
  async flooded(nodeId: string, reason: string): Promise<void> {
    const hour = Math.floor(this.#deps.clock.now() / HOUR_MS);
    const message = `The daemon's link was closed: ${reason}. Check what is running on this machine, and update its daemon.`;
    const sourceId = `${nodeId}.link_flooded.${hour}`;
    await this.#deps.events.append([{ ...this.#event(nodeId, "link_flooded", message), sourceId }]);
  }

  #drop(nodeId: string, rows: number): void {
    this.#deps.bounds.reached("node_event_rows", rows);
    const dropped = this.#dropped.get(nodeId);
    if (dropped === undefined) this.#dropped.set(nodeId, { since: this.#deps.clock.now(), rows, told: 0 });
    else dropped.rows += rows;
  }

  #event(nodeId: string, kind: string, message: string): NodeEventRecord {
    const { ids, clock } = this.#deps;
    return { id: ids.next("event"), nodeId, at: clock.now(), kind, status: null, message };
  }
}
