import { spawn } from "node:child_process";
import { feedingInterval, type ServiceManager } from "@fairlead/protocol/values/service-manager";

export interface ToldServiceManager {
  /**
   * The stop has begun and takes at most this long: systemd extends `TimeoutStopSec` accordingly. The watchdog is still
   * fed, since calls may use all of that time.
   */
  readonly stopping: (boundMs: number) => void;
  readonly stopped: () => void;
}

/**
 * Notifies systemd that the server has started, and feeds its watchdog while the event loop runs. Does not depend on the
 * store: if it hangs, responses must still be streamed.
 */
export function tellServiceManager({ listens, watchdogMs }: ServiceManager): ToldServiceManager {
  if (!listens) return { stopping: () => undefined, stopped: () => undefined };
  notify(["READY=1"]);
  const feeding =
    watchdogMs === null ? undefined : setInterval(() => notify(["WATCHDOG=1"]), feedingInterval(watchdogMs)).unref();
  return {
    stopping: (boundMs) => notify(["STOPPING=1", `EXTEND_TIMEOUT_USEC=${boundMs * 1000}`]),
    stopped: () => clearInterval(feeding),
  };
}

/**
 * Node cannot open Unix datagram sockets, so this runs systemd's own tool. The tool waits for an acknowledgement,
 * because messages of a sender that exits too early can get lost (systemd/systemd#5239).
 */
function notify(assignments: readonly string[]): void {
  const child = spawn("systemd-notify", assignments, { stdio: "ignore" });
  // Without the tool the unit's start times out, and the journal shows why.
  child.on("error", () => undefined);
  child.unref();
}
