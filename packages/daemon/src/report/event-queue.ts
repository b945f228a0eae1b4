import { MAX_EVENT_MESSAGE, MAX_EVENTS_PER_CALL, type ReportedNodeEvent } from "@fairlead/protocol/daemon-link";
import { fullJitter } from "@fairlead/protocol/values/backoff";
import { type Clock, rfc3339 } from "@fairlead/protocol/values/clock";
import type { IdSource } from "@fairlead/protocol/values/ids";
import { cutText } from "@fairlead/protocol/values/text";
import { CallRejected, type LinkConnection } from "../link/control-link.ts";
import { type DaemonLog, reasonOf } from "../process/log.ts";
import type { Timers } from "../process/timers.ts";
import { EventSeries, noteOfRepeats } from "./event-series.ts";

export interface EventQueueDeps {
  readonly clock: Pick<Clock, "monotonic">;
  /** Unix milliseconds on the platform's clock, if known. */
  readonly platformTime: () => number;
  readonly timers: Timers;
  readonly ids: IdSource;
  readonly random: () => number;
  readonly log: DaemonLog;
}

const CAPACITY = 1000;
/** Well below the size limit of a link message. */
const BATCH_BYTES = 256 * 1024;
const MAX_WORD = 64;
const BACKOFF = { baseMs: 1000, maxMs: 30_000 };

interface HeldEvent {
  /** Monotonic milliseconds: the wall clock may be wrong until the platform's time is known. */
  readonly happenedAt: number;
  readonly event: Omit<ReportedNodeEvent, "at">;
}

/**
 * Events of this node, kept until the control plane has them. IDs make resends idempotent. Repeated events are merged, and
 * events that do not fit are counted.
 */
export class EventQueue {
  readonly #deps: EventQueueDeps;
  readonly #series = new EventSeries();
  #events: HeldEvent[] = [];
  #dropped = 0;
  #connection: LinkConnection | null = null;
  #sending = false;
  #failures = 0;
  /** Do not send before, as requested by the control plane. Monotonic. */
  #notBefore = 0;
  #cancelRetry: () => void = () => undefined;
  #cancelDue: () => void = () => undefined;

  constructor(deps: EventQueueDeps) {
    this.#deps = deps;
  }

  readonly push = (kind: string, workloadId: string | null, message: string): void => {
    const now = this.#deps.clock.monotonic();
    if (this.#series.offer({ kind, workloadId, message }, now)) this.#add({ kind, workloadId, message }, now);
    else this.#awaitDue(now);
  };

  attach(connection: LinkConnection): void {
    this.#connection = connection;
    this.#failures = 0;
    this.#notBefore = 0;
    void this.#flush();
  }

  detach(): void {
    this.#connection = null;
    this.#cancelRetry();
  }

  #awaitDue(now: number): void {
    this.#cancelDue();
    const next = this.#series.nextDue();
    if (next !== null) this.#cancelDue = this.#deps.timers.after(Math.max(0, next - now), () => this.#tellDue());
  }

  #tellDue(): void {
    const now = this.#deps.clock.monotonic();
    for (const repeats of this.#series.due(now)) this.#add(repeats, repeats.lastAt, noteOfRepeats(repeats));
    this.#awaitDue(now);
  }

  #add(event: Pick<ReportedNodeEvent, "kind" | "workloadId" | "message">, happenedAt: number, note = ""): void {
    if (this.#events.length < CAPACITY) this.#events.push(this.#event(event, happenedAt, note));
    else this.#dropped += 1;
    void this.#flush();
  }

  #event(
    { kind, workloadId, message }: Omit<ReportedNodeEvent, "id" | "at">,
    happenedAt: number,
    note = "",
  ): HeldEvent {
    const event = {
      id: this.#deps.ids.next("event"),
      kind: cutText(kind, MAX_WORD),
      workloadId: workloadId === null ? null : cutText(workloadId, MAX_WORD),
      message: cutText(message, MAX_EVENT_MESSAGE - note.length) + note,
    };
    return { happenedAt, event };
  }

  #tell({ event, happenedAt }: HeldEvent): ReportedNodeEvent {
    const { clock, platformTime } = this.#deps;
    return { ...event, at: rfc3339(platformTime() - (clock.monotonic() - happenedAt)) };
  }

  async #flush(): Promise<void> {
    if (this.#sending || this.#deps.clock.monotonic() < this.#notBefore) return;
    this.#sending = true;
    try {
      while (this.#connection !== null && this.#events.length > 0) await this.#sendBatch(this.#connection);
    } catch (error) {
      this.#deps.log.debug({ reason: reasonOf(error) }, "could not send events");
      this.#retry(error instanceof CallRejected ? error.retryAfterMs : 0);
    } finally {
      this.#sending = false;
    }
  }

  async #sendBatch(connection: LinkConnection): Promise<void> {
    if (this.#dropped > 0) {
      const message = `${this.#dropped} events were dropped because the queue was full`;
      const event = { kind: "events_dropped", workloadId: null, message };
      this.#events.push(this.#event(event, this.#deps.clock.monotonic()));
      this.#dropped = 0;
    }
    const batch = batchOf(this.#events);
    try {
      await connection.events(batch.map((held) => this.#tell(held)));
    } catch (error) {
      if (!(error instanceof CallRejected) || error.kind !== "invalid") throw error;
      // They would be rejected again and block later events.
      this.#deps.log.error(
        { reason: error.message, events: batch.length },
        "the control plane rejected events; dropping them",
      );
      this.#dropped += batch.length;
    }
    const sent = new Set(batch);
    this.#events = this.#events.filter((event) => !sent.has(event));
    this.#failures = 0;
  }

  #retry(retryAfterMs: number): void {
    this.#failures += 1;
    this.#notBefore = this.#deps.clock.monotonic() + retryAfterMs;
    this.#cancelRetry();
    const delay = Math.max(retryAfterMs, fullJitter(BACKOFF, this.#failures, this.#deps.random()));
    this.#cancelRetry = this.#deps.timers.after(delay, () => void this.#flush());
  }
}

/** The first events that fit into one call, at least one. */
function batchOf(events: readonly HeldEvent[]): HeldEvent[] {
  const batch: HeldEvent[] = [];
  let bytes = 0;
  for (const held of events) {
    bytes += Buffer.byteLength(JSON.stringify(held.event));
    if (batch.length === MAX_EVENTS_PER_CALL || (batch.length > 0 && bytes > BATCH_BYTES)) break;
    batch.push(held);
  }
  return batch;
}
