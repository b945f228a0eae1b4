/** Merges repeated events of a workload, so that a crash loop does not fill the node's history. Pure. */

/** Number of events sent individually. */
const BURST = 10;
/** A series ends after this time without an event. */
const QUIET_MS = 3_600_000;
/** After that, the events of a window are merged; each window is twice as long as the last. */
const FIRST_WINDOW_MS = 60_000;
const MAX_WINDOW_MS = 6 * QUIET_MS;
/** Far more than workloads × kinds of events on a node. */
const MAX_SERIES = 5000;

export interface RepeatedEvent {
  readonly kind: string;
  readonly workloadId: string | null;
  /** Of the latest event. */
  readonly message: string;
  readonly count: number;
  /** Whether all had the same message. */
  readonly same: boolean;
  readonly firstAt: number;
  readonly lastAt: number;
}

interface Series {
  readonly kind: string;
  readonly workloadId: string | null;
  told: number;
  windowMs: number;
  lastAt: number;
  held: RepeatedEvent | null;
}

export class EventSeries {
  readonly #series = new Map<string, Series>();

  /** Times are monotonic milliseconds. @returns whether to send it now; otherwise it is merged and returned by `due`. */
  offer(event: Pick<RepeatedEvent, "kind" | "workloadId" | "message">, now: number): boolean {
    const { kind, workloadId, message } = event;
    const key = `${kind} ${workloadId ?? ""}`;
    const series = this.#series.get(key);
    if (series === undefined || isOver(series, now)) {
      this.#begin(key, { kind, workloadId, told: 1, windowMs: FIRST_WINDOW_MS, lastAt: now, held: null });
      return true;
    }
    series.lastAt = now;
    if (series.told < BURST) {
      series.told += 1;
      return true;
    }
    const { count = 0, same = true, firstAt = now } = series.held ?? {};
    const isSame = same && (series.held === null || series.held.message === message);
    series.held = { ...event, count: count + 1, same: isSame, firstAt, lastAt: now };
    return false;
  }

  /** @returns merged events whose window has ended. */
  due(now: number): RepeatedEvent[] {
    const due: RepeatedEvent[] = [];
    for (const series of this.#series.values()) {
      const { held, windowMs } = series;
      if (held === null || held.firstAt + windowMs > now) continue;
      due.push(held);
      series.held = null;
      series.windowMs = Math.min(MAX_WINDOW_MS, windowMs * 2);
    }
    return due;
  }

  /** @returns when the next merged event is due, or null. */
  nextDue(): number | null {
    let next: number | null = null;
    for (const { held, windowMs } of this.#series.values()) {
      if (held !== null) next = Math.min(next ?? Number.POSITIVE_INFINITY, held.firstAt + windowMs);
    }
    return next;
  }

  #begin(key: string, series: Series): void {
    this.#series.delete(key);
    this.#series.set(key, series);
    if (this.#series.size <= MAX_SERIES) return;
    for (const [other, known] of this.#series) if (isOver(known, series.lastAt)) this.#series.delete(other);
    const [oldest] = this.#series.keys();
    if (this.#series.size > MAX_SERIES && oldest !== undefined) this.#series.delete(oldest);
  }
}

function isOver({ held, lastAt, windowMs }: Series, now: number): boolean {
  return held === null && now - lastAt >= Math.max(QUIET_MS, windowMs);
}

/** @returns a suffix for the message; "" for a single event. */
export function noteOfRepeats({ count, same, firstAt, lastAt }: RepeatedEvent): string {
  if (count === 1) return "";
  const minutes = Math.max(1, Math.round((lastAt - firstAt) / 60_000));
  const within = minutes === 1 ? "one minute" : `${minutes} minutes`;
  return same ? ` (${count} times within ${within})` : ` (the last of ${count} within ${within})`;
}
