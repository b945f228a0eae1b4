import { growingCache } from "@fairlead/hosting/growing-cache";
import type { Clock } from "@fairlead/protocol/values/clock";

export interface EventRoomsDeps {
  /** @returns how many rows there are of this node, `limit` at most. */
  readonly count: (nodeId: string, limit: number) => Promise<number>;
  readonly maxRows: number;
  readonly clock: Pick<Clock, "monotonic">;
  readonly onDropped: (nodeId: string, rows: number) => void;
}

interface Room {
  rows: number;
  readonly countedAt: number;
}

const MAX_NODES = 100_000;
/** Retention makes room: a full one is counted again this often. */
const RECOUNT_MS = 10 * 60_000;

/** How many more rows each node's reports may write. They are counted in the store once, and in memory from then on. */
export class EventRooms {
  readonly #deps: EventRoomsDeps;
  readonly #rooms = growingCache<Room>(MAX_NODES);

  constructor(deps: EventRoomsDeps) {
    this.#deps = deps;
  }

  /** Before `take`, and outside of a transaction: learns how many rows there are. */
  async open(nodeId: string): Promise<void> {
    const { clock, count, maxRows } = this.#deps;
    const room = this.#rooms.get(nodeId);
    const countedAt = clock.monotonic();
    if (room !== undefined && (room.rows < maxRows || countedAt - room.countedAt < RECOUNT_MS)) return;
    this.#rooms.set(nodeId, { rows: await count(nodeId, maxRows), countedAt });
  }

  /** @returns how many of these rows may be written; the others are dropped. */
  take(nodeId: string, wanted: number): number {
    const room = this.#rooms.get(nodeId);
    if (room === undefined) return wanted;
    const granted = Math.max(0, Math.min(wanted, this.#deps.maxRows - room.rows));
    room.rows += granted;
    if (granted < wanted) this.#deps.onDropped(nodeId, wanted - granted);
    return granted;
  }
}
