/** What systemd tells a service by its environment: sd_notify(3), sd_watchdog_enabled(3). */
export interface ServiceManager {
  /** Whether it waits to be told of the start, and listens from then on. */
  readonly listens: boolean;
  /** It ends and restarts a service that is silent for so long; null: it does not watch. */
  readonly watchdogMs: number | null;
}

export function serviceManagerOf(env: Readonly<Record<string, string | undefined>>, pid: number): ServiceManager {
  const listens = Boolean(env["NOTIFY_SOCKET"]);
  const microseconds = Number(env["WATCHDOG_USEC"]);
  const watcher = env["WATCHDOG_PID"];
  // A process that inherited the variables is not the one that is watched (systemd/systemd#25961).
  const isWatched = listens && microseconds > 0 && (watcher === undefined || watcher === String(pid));
  return { listens, watchdogMs: isWatched ? microseconds / 1000 : null };
}

/** How often the watchdog is fed: two of its messages may be lost, or late. */
export function feedingInterval(watchdogMs: number): number {
  return watchdogMs / 4;
}
