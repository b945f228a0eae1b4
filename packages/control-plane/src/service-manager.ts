import { spawn } from "node:child_process";
import { feedingInterval, type ServiceManager } from "@fairlead/protocol/service-manager";

export interface ToldServiceManager {
  /** The stop has begun. The watchdog is fed on: calls may take as long as they are given to. */
  readonly stopping: () => void;
  readonly stopped: () => void;
}

/**
 * Tells systemd that the server has started, and feeds its watchdog for as long as the event loop turns. Not for as long as the store
 * answers: one that hangs is no reason to cut the answers that are being streamed.
 */
export function tellServiceManager({ listens, watchdogMs }: ServiceManager): ToldServiceManager {
  if (!listens) return { stopping: () => undefined, stopped: () => undefined };
  notify("READY=1");
  const feeding =
    watchdogMs === null ? undefined : setInterval(() => notify("WATCHDOG=1"), feedingInterval(watchdogMs)).unref();
  return { stopping: () => notify("STOPPING=1"), stopped: () => clearInterval(feeding) };
}

/**
 * Node cannot open datagram sockets of the Unix kind, so systemd's own tool speaks for it. The tool waits until it was heard: a
 * sender that is gone too soon may not be (systemd/systemd#5239).
 */
function notify(assignment: string): void {
  const child = spawn("systemd-notify", [assignment], { stdio: "ignore" });
  // Without the tool the unit's start simply times out, and the journal shows why.
  child.on("error", () => undefined);
  child.unref();
}
