import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { WantedDaemon } from "@fairlead/protocol/daemon-updates";
import { urlBelow } from "@fairlead/protocol/values/url";
import type { ProxyRules } from "@fairlead/wire/proxy/proxy-rules";
import { type DiskSpace, roomProblem } from "../host/disk-rules.ts";
import { type DaemonLog, reasonOf } from "../process/log.ts";
import type { DurableRecord } from "../state/durable-record.ts";
import { download, fileSha256 } from "./download.ts";
import { fileFor, type Problem, type StepName } from "./update-plan.ts";
import type { Trial, UpdateRecord } from "./update-record.ts";
import type { VersionsFolder } from "./versions-folder.ts";

const run = promisify(execFile);
/** Programs start slowly on a loaded machine. */
const CHECK_MS = 60_000;

/** Checks that a new version starts, has the expected version and can read the state folder. */
interface CheckedBuild {
  readonly program: string;
  readonly version: string;
  /** Flags for `fairlead-daemon check`, with this daemon's folders. */
  readonly flags: readonly string[];
  readonly signal: AbortSignal;
}

/** @returns why the build is unusable, or null */
async function checkBuild({ program, version, flags, signal }: CheckedBuild): Promise<string | null> {
  const ask = async (...args: string[]): Promise<string> =>
    (await run(program, args, { timeout: CHECK_MS, signal })).stdout.trim();
  try {
    const says = await ask("--version");
    if (!says.startsWith(`${version} (`)) return `unexpected version: ${says.slice(0, 100)}`;
    await ask("check", ...flags);
    return null;
  } catch (error) {
    signal.throwIfAborted();
    const said = error instanceof Error && "stderr" in error ? String(error.stderr).trim() : "";
    return `it does not run on this machine: ${(said || reasonOf(error)).slice(-500)}`;
  }
}

export interface StepContext {
  readonly signal: AbortSignal;
  readonly onPercent: (percent: number) => void;
}

/** Executes a step. @returns why it failed, or null; never throws. Ignore the result after an abort. */
export type UpdateSteps = Readonly<
  Record<StepName, (wanted: WantedDaemon, context: StepContext) => Promise<Problem | null>>
>;

export interface UpdateStepsDeps {
  readonly versions: VersionsFolder;
  readonly record: DurableRecord<UpdateRecord>;
  readonly platformUrl: string;
  readonly proxies: Pick<ProxyRules, "find">;
  readonly arch: string;
  /** Free space for versions; null if unknown. */
  readonly readSpace: () => Promise<DiskSpace | null>;
  /** Flags for `fairlead-daemon check`. */
  readonly checkFlags: readonly string[];
  /** What works now; the new version must do as well. */
  readonly works: () => Trial["before"];
  /** Resolves when no call is running, or after a timeout. */
  readonly whenQuiet: (signal: AbortSignal) => Promise<void>;
  readonly log: DaemonLog;
}

/** Space for a build relative to its tar, because both exist at the same time. */
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
  no_room: "not enough disk space",
  download_failed: "could not download the build",
  bad_download: "the downloaded build does not match the platform's hash",
  unpack_failed: "could not unpack the build",
  check_failed: "the build failed its check",
  switch_failed: "could not switch to the new version",
  no_build: "there is no build",
  not_installed: "this daemon cannot update itself",
};

interface Fetch {
  readonly file: BuildFile;
  readonly wanted: WantedDaemon;
  readonly context: StepContext;
}

async function fetchBuild(deps: UpdateStepsDeps, { file, wanted, context }: Fetch): Promise<void> {
  const { versions, platformUrl, proxies, readSpace } = deps;
  const { path, sha256, bytes } = file;
  if (await versions.holds(wanted.version, sha256)) return;
  const target = await versions.downloadFile(sha256);
  let asked = Number.NEGATIVE_INFINITY;
  const onBytes = async (received: number): Promise<void> => {
    context.onPercent((100 * received) / bytes);
    // Other programs use the disk too. Not checked for every chunk.
    if (received - asked < bytes / 20) return;
    asked = received;
    const space = await readSpace();
    const problem = space && roomProblem(space, bytes - received + bytes * UNPACKED);
    if (problem) throw new StepFailed("no_room", `daemon version ${wanted.version} was not downloaded: ${problem}`);
  };
  const url = urlBelow(platformUrl, path);
  await download({ url, file: target, bytes, signal: context.signal, proxies, onBytes });
  const actual = await fileSha256(target);
  if (actual === sha256) return;
  await versions.dropDownload(sha256);
  throw new StepFailed("bad_download", `SHA-256 is ${actual} instead of ${sha256}`);
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

/** This order leaves either the old version or the new one on trial if interrupted anywhere. */
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
  log.info({ version: to, before: trial.from }, "switching to a new version, on trial");
}
