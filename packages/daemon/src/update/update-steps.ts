import type { WantedDaemon } from "@fairlead/protocol/daemon-updates";
import { type DiskSpace, roomProblem } from "../host/disk-rules.ts";
import { type Log, reasonOf } from "../log.ts";
import type { DurableRecord } from "../state/durable-record.ts";
import { checkBuild } from "./check-build.ts";
import { download, sha256Of } from "./download.ts";
import { fileFor, type Problem, type StepName } from "./update-plan.ts";
import type { Trial, UpdateRecord } from "./update-record.ts";
import type { VersionsFolder } from "./versions-folder.ts";

export interface StepContext {
  readonly signal: AbortSignal;
  readonly onPercent: (percent: number) => void;
}

/** What the daemon does in each step. @returns why it failed, or null; never throws. After an abort the answer is of no interest. */
export type UpdateSteps = Readonly<
  Record<StepName, (wanted: WantedDaemon, context: StepContext) => Promise<Problem | null>>
>;

export interface UpdateStepsDeps {
  readonly versions: VersionsFolder;
  readonly record: DurableRecord<UpdateRecord>;
  readonly platformUrl: string;
  readonly arch: string;
  /** Of the file system that versions lie on; null where that cannot be told. */
  readonly readSpace: () => Promise<DiskSpace | null>;
  /** Of `fairlead-daemon check`. */
  readonly checkFlags: readonly string[];
  /** What works now: the new version must reach no more. */
  readonly works: () => Trial["before"];
  /** Resolves when no call runs, or after a while. */
  readonly whenQuiet: (signal: AbortSignal) => Promise<void>;
  readonly log: Log;
}

/** A build needs so much more room than its tar: beside it lies what comes out of it. */
const UNPACKED = 4;

export function updateSteps(deps: UpdateStepsDeps): UpdateSteps {
  const { arch } = deps;
  const attempt =
    (reason: Problem["reason"], work: (file: BuildFile, wanted: WantedDaemon, context: StepContext) => Promise<void>) =>
    async (wanted: WantedDaemon, context: StepContext): Promise<Problem | null> => {
      try {
        const file = fileFor(wanted, arch);
        if (file === undefined) throw new StepFailed("no_build", `there is no build for ${arch}`);
        await work(file, wanted, context);
        return null;
      } catch (error) {
        return problemOf(error, reason);
      }
    };
  return {
    downloading: attempt("download_failed", (file, wanted, context) => fetchBuild(deps, { file, wanted, context })),
    unpacking: attempt("unpack_failed", (file, wanted) => unpack(deps, file, wanted)),
    checking: attempt("check_failed", (_file, wanted, { signal }) => check(deps, wanted, signal)),
    restarting: attempt("switch_failed", (_file, wanted, { signal }) => handOver(deps, wanted, signal)),
  };
}

type BuildFile = WantedDaemon["files"][number];

class StepFailed extends Error {
  readonly reason: Problem["reason"];

  constructor(reason: Problem["reason"], message: string) {
    super(message);
    this.reason = reason;
  }
}

function problemOf(error: unknown, reason: Problem["reason"]): Problem {
  if (error instanceof StepFailed) return { reason: error.reason, message: error.message };
  const full =
    error instanceof Error && /ENOSPC|No space left/.test(`${String("code" in error && error.code)} ${error.message}`);
  return { reason: full ? "no_room" : reason, message: `${WORDS[reason]}: ${reasonOf(error)}` };
}

const WORDS: Readonly<Record<Problem["reason"], string>> = {
  no_room: "there is no room",
  download_failed: "the build could not be fetched",
  bad_download: "the build is not what the platform named",
  unpack_failed: "the build could not be unpacked",
  check_failed: "the build could not be checked",
  switch_failed: "the new version could not be put in place",
  no_build: "there is no build",
  not_installed: "this daemon cannot update itself",
};

interface Fetch {
  readonly file: BuildFile;
  readonly wanted: WantedDaemon;
  readonly context: StepContext;
}

async function fetchBuild(deps: UpdateStepsDeps, { file, wanted, context }: Fetch): Promise<void> {
  const { versions, platformUrl, readSpace } = deps;
  const { path, sha256, bytes } = file;
  if (await versions.holds(wanted.version, sha256)) return;
  const target = await versions.downloadFile(sha256);
  let asked = Number.NEGATIVE_INFINITY;
  const onBytes = async (received: number): Promise<void> => {
    context.onPercent((100 * received) / bytes);
    // Others fill the disk too; not asked for every chunk.
    if (received - asked < bytes / 20) return;
    asked = received;
    const space = await readSpace();
    const problem = space && roomProblem(space, bytes - received + bytes * UNPACKED);
    if (problem) throw new StepFailed("no_room", `version ${wanted.version} of the daemon was not fetched: ${problem}`);
  };
  await download({ url: new URL(path, platformUrl).href, file: target, bytes, signal: context.signal, onBytes });
  const actual = await sha256Of(target);
  if (actual === sha256) return;
  await versions.dropDownload(sha256);
  throw new StepFailed("bad_download", `what came has the SHA-256 ${actual} instead of ${sha256}`);
}

async function unpack({ versions }: UpdateStepsDeps, { sha256 }: BuildFile, { version }: WantedDaemon): Promise<void> {
  if (!(await versions.holds(version, sha256))) {
    await versions.place(version, { archive: await versions.downloadFile(sha256), sha256 });
  }
  await versions.dropDownload(sha256);
}

async function check(deps: UpdateStepsDeps, { version }: WantedDaemon, signal: AbortSignal): Promise<void> {
  const { versions, checkFlags } = deps;
  const problem = await checkBuild({ program: versions.program(version), version, flags: checkFlags, signal });
  if (problem !== null) throw new StepFailed("check_failed", problem);
}

/** In this order a program that ends anywhere in between leaves either the old version, or the new one on trial. */
async function handOver(deps: UpdateStepsDeps, wanted: WantedDaemon, signal: AbortSignal): Promise<void> {
  const { versions, record, works, whenQuiet, log } = deps;
  const { version: to, request } = wanted;
  await whenQuiet(signal);
  signal.throwIfAborted();
  const trial: Trial = { from: versions.installed.version, to, request, before: works(), failed: null };
  const { value } = await record.load();
  try {
    await versions.guard(to);
    await record.save({ trial, last: value?.last ?? null });
    await versions.switchTo(to);
  } catch (error) {
    await versions.switchTo(trial.from);
    await record.save({ trial: null, last: value?.last ?? null });
    await versions.dropGuard();
    throw error;
  }
  log.info({ version: to, before: trial.from }, "a new version takes over, on trial");
}
