import type { WantedDaemon } from "@fairlead/protocol/daemon-updates";
import type { EndedUpdate } from "./update-record.ts";

/** State machine of a daemon update, from the request to the handover. Pure; times in milliseconds. */

/** Why a step failed. */
export interface Problem {
  /** Machine-readable reason. */
  readonly reason:
    | "no_room"
    | "download_failed"
    | "bad_download"
    | "unpack_failed"
    | "check_failed"
    | "switch_failed"
    | "no_build"
    | "not_installed";
  readonly message: string;
}

/** The requested version and the number of earlier attempts. */
interface Underway {
  readonly wanted: WantedDaemon;
  readonly attempt: number;
}

export type UpdateState =
  | { readonly name: "idle" }
  | (Underway & { readonly name: "waiting"; readonly delayMs: number; readonly problem: Problem | null })
  | (Underway & { readonly name: StepName })
  /** Not retried until requested again. */
  | { readonly name: "refused"; readonly wanted: WantedDaemon; readonly problem: Problem };

export const STEPS = ["downloading", "unpacking", "checking", "restarting"] as const;
export type StepName = (typeof STEPS)[number];

export type UpdateEvent =
  /** The requested version; null to keep this one. Sent with every desired state. */
  | { readonly type: "asked"; readonly wanted: WantedDaemon | null }
  /** The delay has passed. */
  | { readonly type: "due" }
  /** The step is done. */
  | { readonly type: "done" }
  | { readonly type: "failed"; readonly problem: Problem };

export interface UpdateFacts {
  /** Version of the running program. */
  readonly version: string;
  /** Architecture in build names, such as `x64`. */
  readonly arch: string;
  /** Whether it is an installed build that can update itself. */
  readonly installed: boolean;
  readonly last: EndedUpdate | null;
  /** In [0, 1). */
  readonly random: number;
}

const BACKOFF = { baseMs: 30_000, maxMs: 15 * 60_000 };
/** Failures of the build itself are permanent; a damaged download may succeed later. */
const TRIES: Readonly<Record<Problem["reason"], number>> = {
  no_room: Number.POSITIVE_INFINITY,
  download_failed: Number.POSITIVE_INFINITY,
  switch_failed: Number.POSITIVE_INFINITY,
  bad_download: 3,
  unpack_failed: 3,
  check_failed: 1,
  no_build: 1,
  not_installed: 1,
};

export function nextUpdate(state: UpdateState, event: UpdateEvent, facts: UpdateFacts): UpdateState {
  // The next version has already been switched.
  if (state.name === "restarting" && event.type === "asked") return state;
  switch (event.type) {
    case "asked":
      return asked(state, event.wanted, facts);
    case "due":
      return state.name === "waiting" ? step("downloading", state) : state;
    case "done":
      return afterStep(state);
    case "failed":
      return isStep(state) ? afterFailure(state, event.problem, facts) : state;
  }
}

function asked(state: UpdateState, wanted: WantedDaemon | null, facts: UpdateFacts): UpdateState {
  if (wanted === null || wanted.version === facts.version) return { name: "idle" };
  if (state.name !== "idle" && isSame(state.wanted, wanted)) return state;
  if (isGivenUp(facts.last, wanted)) return { name: "idle" };
  const obstacle = obstacleTo(wanted, facts);
  if (obstacle !== null) return { name: "refused", wanted, problem: obstacle };
  const delayMs = Math.floor(facts.random * wanted.spreadSeconds * 1000);
  if (delayMs === 0) return { name: "downloading", wanted, attempt: 0 };
  return { name: "waiting", wanted, attempt: 0, delayMs, problem: null };
}

function obstacleTo(wanted: WantedDaemon, { arch, installed }: UpdateFacts): Problem | null {
  if (!installed) {
    const message = "this daemon was not installed with install.sh, so it cannot update itself";
    return { reason: "not_installed", message };
  }
  if (fileFor(wanted, arch) !== undefined) return null;
  return { reason: "no_build", message: `there is no build of version ${wanted.version} for ${arch}` };
}

function afterStep(state: UpdateState): UpdateState {
  if (!isStep(state)) return state;
  const next = STEPS[STEPS.indexOf(state.name) + 1];
  // The program exits.
  return next === undefined ? state : step(next, state);
}

function afterFailure(state: Underway, problem: Problem, { random }: UpdateFacts): UpdateState {
  const attempt = state.attempt + 1;
  const { wanted } = state;
  if (attempt >= TRIES[problem.reason]) return { name: "refused", wanted, problem };
  const longest = Math.min(BACKOFF.maxMs, BACKOFF.baseMs * 2 ** Math.min(attempt - 1, 10));
  return { name: "waiting", wanted, attempt, delayMs: Math.floor((longest * (1 + random)) / 2), problem };
}

function isStep(state: UpdateState): state is Underway & { readonly name: StepName } {
  return STEPS.some((name) => name === state.name);
}

function step(name: StepName, { wanted, attempt }: Underway): UpdateState {
  return { name, wanted, attempt };
}

function isSame(a: WantedDaemon, b: WantedDaemon): boolean {
  return a.version === b.version && a.request === b.request;
}

/** Whether this request has already failed. */
function isGivenUp(last: EndedUpdate | null, { version, request }: WantedDaemon): boolean {
  return last !== null && last.state !== "done" && last.wanted === version && last.request === request;
}

/** The build file for an architecture. */
export function fileFor(wanted: WantedDaemon, arch: string): WantedDaemon["files"][number] | undefined {
  return wanted.files.find((file) => file.arch === arch);
}
