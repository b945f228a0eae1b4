import { spawn } from "node:child_process";
import { stat } from "node:fs/promises";
import { feedingInterval, type ServiceManager } from "@fairlead/protocol/service-manager";
import type { Timers } from "../timers.ts";

/** One assignment of sd_notify(3), such as `READY=1`. */
export type Notify = (assignment: string) => void;

/**
 * Node cannot open datagram sockets of the Unix kind, so systemd's own tool speaks for it. The tool waits until it was heard: a
 * sender that is gone too soon may not be (systemd/systemd#5239).
 */
export function notifier({ listens }: ServiceManager): Notify {
  return (assignment) => {
    if (!listens) return;
    const child = spawn("systemd-notify", [assignment], { stdio: "ignore" });
    // Without the tool the unit's start simply times out, and the journal shows why.
    child.on("error", () => undefined);
    child.unref();
  };
}

export interface WatchdogDeps {
  readonly manager: ServiceManager;
  readonly notify: Notify;
  readonly timers: Timers;
}

/** Feeds systemd's watchdog for as long as this program gets on: its event loop turns, and so does what is named to `watch`. */
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

  /** What must get on too from now on. */
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

/** Whether systemd runs this machine (sd_booted(3)). */
export async function runsSystemd(): Promise<boolean> {
  try {
    return (await stat("/run/systemd/system")).isDirectory();
  } catch {
    return false;
  }
}
