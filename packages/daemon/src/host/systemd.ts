import { spawn } from "node:child_process";
import { stat } from "node:fs/promises";
import { feedingInterval, type ServiceManager } from "@fairlead/protocol/values/service-manager";
import type { Timers } from "../process/timers.ts";

/** One assignment of sd_notify(3), such as `READY=1`. */
export type Notify = (assignment: string) => void;

/**
 * Node cannot open Unix datagram sockets, so this uses the `systemd-notify` tool, which waits until systemd has read the message: a
 * message from a process that exits too early may be lost (systemd/systemd#5239).
 */
export function notifier({ listens }: ServiceManager): Notify {
  return (assignment) => {
    if (!listens) return;
    const child = spawn("systemd-notify", [assignment], { stdio: "ignore" });
    // Without the tool, the unit's start times out and the journal shows why.
    child.on("error", () => undefined);
    child.unref();
  };
}

export interface WatchdogDeps {
  readonly manager: ServiceManager;
  readonly notify: Notify;
  readonly timers: Timers;
}

/** Feeds systemd's watchdog while the event loop and everything passed to `watch` make progress. */
export class Watchdog {
  readonly #deps: WatchdogDeps;
  #getsOn: () => boolean = () => true;
  #cancel: () => void = () => undefined;

  constructor(deps: WatchdogDeps) {
    this.#deps = deps;
  }

  start(): void {
    const { watchdogMs } = this.#deps.manager;
    if (watchdogMs !== null) this.#feed(feedingInterval(watchdogMs));
  }

  /** Adds something that must make progress too. */
  watch(getsOn: () => boolean): void {
    this.#getsOn = getsOn;
  }

  close(): void {
    this.#cancel();
  }

  #feed(intervalMs: number): void {
    if (this.#getsOn()) this.#deps.notify("WATCHDOG=1");
    this.#cancel = this.#deps.timers.after(intervalMs, () => this.#feed(intervalMs));
  }
}

/** Whether systemd is the init system (sd_booted(3)). */
export async function runsSystemd(): Promise<boolean> {
  try {
    return (await stat("/run/systemd/system")).isDirectory();
  } catch {
    return false;
  }
}
