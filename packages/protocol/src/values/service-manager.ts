/** Settings that systemd passes to a service by environment: sd_notify(3), sd_watchdog_enabled(3). */
export interface ServiceManager {
  /** Whether it waits for the ready notification and listens afterwards. */
  readonly listens: boolean;
  /** Restarts a service that sends no message for this long; null: no watchdog. */
  readonly watchdogMs: number | null;
}

export function serviceManagerOf(env: Readonly<Record<string, string | undefined>>, pid: number): ServiceManager {
  const listens = Boolean(env["NOTIFY_SOCKET"]);
  const microseconds = Number(env["WATCHDOG_USEC"]);
  const watcher = env["WATCHDOG_PID"];
  // Only the process named in the variables is watched, not one that inherited them (systemd/systemd#25961).
  const isWatched = listens && microseconds > 0 && (watcher === undefined || watcher === String(pid));
  return { listens, watchdogMs: isWatched ? microseconds / 1000 : null };
}

/** Interval of watchdog messages: two may be lost or late. */
export function feedingInterval(watchdogMs: number): number {
  return watchdogMs / 4;
}
