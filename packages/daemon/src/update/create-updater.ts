import type { Clock } from "@fairlead/protocol/clock";
import type { DaemonConfig } from "../config.ts";
import { readDiskSpace } from "../host/disk.ts";
import type { Log } from "../log.ts";
import type { Timers } from "../timers.ts";
import { DAEMON_VERSION } from "../version.ts";
import type { UpdatesAtStart } from "./open-updates.ts";
import { whenQuiet } from "./quiet.ts";
import { updateSteps } from "./update-steps.ts";
import { Updater, type UpdaterDeps } from "./updater.ts";

export interface CreateUpdaterDeps extends Pick<UpdaterDeps, "random" | "onEvent" | "onChange"> {
  readonly updates: UpdatesAtStart;
  readonly config: DaemonConfig;
  readonly platformUrl: string;
  /** Whether a call runs. */
  readonly isBusy: () => boolean;
  readonly linkIsLive: () => boolean;
  readonly engineAnswers: () => boolean;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: Log;
}

/** Joins the updater to what it works with on this machine. */
export function createUpdater(deps: CreateUpdaterDeps): Updater {
  const { updates: opened, config, isBusy, linkIsLive, engineAnswers, timers } = deps;
  const { versions, record } = opened;
  const own = { ...deps, opened, arch: process.arch, trialSeconds: config.trialSeconds };
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

/** The new version's check looks where this daemon works, wherever its settings came from. */
function checkFlags({ stateDir, runtimeDir, dockerSocket, logLevel, insecure }: DaemonConfig): string[] {
  const folders = ["--state-dir", stateDir, "--runtime-dir", runtimeDir, "--docker-socket", dockerSocket];
  return [...folders, "--log-level", logLevel, ...(insecure ? ["--insecure"] : [])];
}
