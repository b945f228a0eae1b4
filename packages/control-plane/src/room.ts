import type { IdempotencyService } from "./access/idempotency/idempotency-service.ts";
import type { RateLimits } from "./http/limits/rate-limits.ts";
import type { PlatformApp } from "./http/platform-host.ts";
import type { Config } from "./installation/config/config.ts";
import type { Installation, Ports } from "./installation/installation-room.ts";
import type { Log } from "./installation/process/log.ts";
import { type Retention, startRetention } from "./installation/process/retention.ts";
import type { ProjectService } from "./people/projects/project-service.ts";
import type { BoundCounters } from "./telemetry/bounds/bound-counters.ts";
import type { MetricSet } from "./telemetry/metrics/metric-kinds.ts";

/** What is open before the rooms, and most of them need. */
export interface Ground extends Ports {
  readonly config: Config;
  readonly log: Log;
  readonly bounds: BoundCounters;
  /** The store, the keys and the users. */
  readonly installation: Installation;
  readonly publicUrl: string;
  readonly modelsUrl: string;
  readonly limits: RateLimits;
  readonly projects: ProjectService;
  readonly idempotency: IdempotencyService;
}

/** The one shape of a room: what it contributes to the server. A function `open…` takes what the room needs and returns this with its services. */
export interface Room {
  /** Registers its routes on the platform host. */
  routes?(app: PlatformApp): void;
  /** What is deleted after a time. */
  readonly retentions?: readonly Retention[];
  /** Background work, started once before the server serves. Each returns how to stop it. */
  readonly runners?: readonly (() => Close)[];
  /** Adds its figures to `/metrics`. */
  readonly metrics?: MetricSet;
  /** Writes what is still in memory and frees what it holds, after its runners have stopped and no request is left. */
  close?(): Promise<void> | void;
}

/** Checks the shape and keeps the services beside it. */
export const asRoom = <R extends Room>(room: R): R => room;

export type Close = () => Promise<void> | void;

/** Everything that is open, in the order of opening. It is closed in reverse, whether the start fails or the server stops. */
export class Opened {
  readonly #closers: Close[] = [];

  /** Closed before everything that was added earlier. */
  add(close: Close): void {
    this.#closers.push(close);
  }

  /** Closed after everything else. */
  addLast(close: Close): void {
    this.#closers.unshift(close);
  }

  room<R extends Room>(room: R): R {
    this.add(async () => room.close?.());
    return room;
  }

  /** Starts what runs in the background: all runners, then all retentions. */
  start(rooms: readonly Room[], log: Log): void {
    for (const run of rooms.flatMap(({ runners = [] }) => runners)) this.add(run());
    for (const retention of rooms.flatMap(({ retentions = [] }) => retentions))
      this.add(startRetention(retention, log));
  }

  /** Closes all of it even if some of it fails, so that a fault does not leave the data folder locked. */
  async close(): Promise<void> {
    const faults: unknown[] = [];
    for (const close of this.#closers.splice(0).toReversed()) {
      try {
        await close();
      } catch (fault) {
        faults.push(fault);
      }
    }
    if (faults.length > 0) throw new AggregateError(faults, "some parts of the server could not be closed");
  }
}
