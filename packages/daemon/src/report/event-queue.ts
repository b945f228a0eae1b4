import { fullJitter } from "@fairlead/protocol/backoff";
import { type Clock, rfc3339 } from "@fairlead/protocol/clock";
import type { NodeEvent } from "@fairlead/protocol/daemon-link";
import type { IdSource } from "@fairlead/protocol/ids";
import type { LinkConnection } from "../link/control-link.ts";
import { type Log, reasonOf } from "../log.ts";
import type { Timers } from "../timers.ts";

export interface EventQueueDeps {
  readonly clock: Pick<Clock, "monotonic">;
  /** Unix milliseconds by the platform's clock, as far as it is known. */
  readonly platformTime: () => number;
  readonly timers: Timers;
  readonly ids: IdSource;
  readonly random: () => number;
  readonly log: Log;
}

const CAPACITY = 1000;
const BATCH = 100;
const MAX_MESSAGE = 2048;
const BACKOFF = { baseMs: 1000, maxMs: 30_000 };

interface HeldEvent {
  /** Monotonic milliseconds: this machine's time may be wrong until the platform has told its own. */
  readonly happenedAt: number;
  readonly event: Omit<NodeEvent, "at">;
}

/** What happened on this node, kept until the control plane has it. Ids make a repeat harmless; the oldest give way when it is full. */
export class EventQueue {
  readonly #deps: EventQueueDeps;
  #events: HeldEvent[] = [];
  #dropped = 0;
  #connection: LinkConnection | null = null;
  #sending = false;
  #failures = 0;
  #cancelRetry: () => void = () => undefined;

  constructor(deps: EventQueueDeps) {
    this.#deps = deps;
  }

  readonly push = (kind: string, workloadId: string | null, message: string): void => {
    this.#events.push(this.#event(kind, workloadId, message));
    if (this.#events.length > CAPACITY) {
      this.#events.shift();
      this.#dropped += 1;
    }
    void this.#flush();
  };

  attach(connection: LinkConnection): void {
    this.#connection = connection;
    this.#failures = 0;
    void this.#flush();
  }

  detach(): void {
    this.#connection = null;
    this.#cancelRetry();
  }

  #event(kind: string, workloadId: string | null, message: string): HeldEvent {
    const { ids, clock } = this.#deps;
    const event = { id: ids.next("event"), kind, workloadId, message: message.slice(0, MAX_MESSAGE) };
    return { happenedAt: clock.monotonic(), event };
  }

  #tell({ event, happenedAt }: HeldEvent): NodeEvent {
    const { clock, platformTime } = this.#deps;
    return { ...event, at: rfc3339(platformTime() - (clock.monotonic() - happenedAt)) };
  }

  async #flush(): Promise<void> {
    if (this.#sending) return;
    this.#sending = true;
    try {
      while (this.#connection !== null && this.#events.length > 0) await this.#sendBatch(this.#connection);
    } catch (error) {
      this.#deps.log.debug({ reason: reasonOf(error) }, "events were not taken");
      this.#retry();
    } finally {
      this.#sending = false;
    }
  }

  async #sendBatch(connection: LinkConnection): Promise<void> {
    if (this.#dropped > 0) {
      this.#events.push(this.#event("events_dropped", null, `${this.#dropped} older events did not fit and are lost`));
      this.#dropped = 0;
    }
    const batch = this.#events.slice(0, BATCH);
    await connection.events(batch.map((held) => this.#tell(held)));
    const sent = new Set(batch);
    this.#events = this.#events.filter((event) => !sent.has(event));
    this.#failures = 0;
  }

  #retry(): void {
    this.#failures += 1;
    this.#cancelRetry();
    const delay = fullJitter(BACKOFF, this.#failures, this.#deps.random());
    this.#cancelRetry = this.#deps.timers.after(delay, () => void this.#flush());
  }
}
