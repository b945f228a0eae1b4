import type { Clock } from "@fairlead/protocol/values/clock";
import { readDiskSpace } from "../host/disk.ts";
import type { DaemonConfig } from "../process/config.ts";
import type { DaemonLog } from "../process/log.ts";
import { sleep, type Timers } from "../process/timers.ts";
import { DAEMON_VERSION } from "../process/version.ts";
import type { UpdatesAtStart } from "./open-updates.ts";
import { updateSteps } from "./update-steps.ts";
import { Updater, type UpdaterDeps } from "./updater.ts";

/** How long a new version waits for a moment without calls, which a restart would cut off. */
const LONGEST_MS = 60_000;
const LOOK_MS = 250;

/** Resolves when no call is running, at the latest after one minute. */
async function whenQuiet(isBusy: () => boolean, timers: Timers, signal: AbortSignal): Promise<void> {
  for (let waited = 0; isBusy() && waited < LONGEST_MS && !signal.aborted; waited += LOOK_MS) {
    await sleep(timers, LOOK_MS, signal);
  }
}

export interface CreateUpdaterDeps extends Pick<UpdaterDeps, "random" | "onEvent" | "onChange"> {
  readonly updates: UpdatesAtStart;
  readonly config: DaemonConfig;
  readonly platformUrl: string;
  /** Whether a call is running. */
  readonly isBusy: () => boolean;
  readonly linkIsLive: () => boolean;
  readonly engineAnswers: () => boolean;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: DaemonLog;
}

/** Creates the updater with its dependencies on this machine. */
export function createUpdater(deps: CreateUpdaterDeps): Updater {
  const { updates: opened, config, isBusy, linkIsLive, engineAnswers, timers } = deps;
  const { versions, record } = opened;
  const own = { ...deps, opened, arch: process.arch, trialSeconds: config.trialSeconds, proxies: config.proxies };
  if (versions === null) return new Updater({ ...own, version: DAEMON_VERSION, steps: null });
  const { root, version } = versions.installed;
  const steps = updateSteps({
    ...own,
    versions,
    record,
    readSpace: () => readDiskSpace(root),
    checkFlags: checkFlags(config),
    works: () => ({ link: linkIsLive(), engine: engineAnswers() }),
    whenQuiet: (signal) => whenQuiet(isBusy, timers, signal),
  });
  return new Updater({ ...own, version, steps });
}

/** Passes this daemon's effective settings to the new version's check. */
function checkFlags({ stateDir, runtimeDir, dockerSocket, logLevel, insecure }: DaemonConfig): string[] {
  const folders = ["--state-dir", stateDir, "--runtime-dir", runtimeDir, "--docker-socket", dockerSocket];
  return [...folders, "--log-level", logLevel, ...(insecure ? ["--insecure"] : [])];
}
