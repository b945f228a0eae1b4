import type { WantedDaemon } from "@fairlead/protocol/daemon-updates";
import type { EndedUpdate } from "./update-record.ts";

/** How a daemon becomes another version, as a pure state machine: from being asked to handing over. Milliseconds. */

/** Why a step failed. */
export interface Problem {
  /** One word for programs. */
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

/** The wanted version and how often it was tried before. */
interface Underway {
  readonly wanted: WantedDaemon;
  readonly attempt: number;
}

export type UpdateState =
  | { readonly name: "idle" }
  | (Underway & { readonly name: "waiting"; readonly delayMs: number; readonly problem: Problem | null })
  | (Underway & { readonly name: StepName })
  /** Not tried again until it is asked for anew. */
  | { readonly name: "refused"; readonly wanted: WantedDaemon; readonly problem: Problem };

export const STEPS = ["downloading", "unpacking", "checking", "restarting"] as const;
export type StepName = (typeof STEPS)[number];

export type UpdateEvent =
  /** The control plane says what it wants; null: that this version stays. It does so with every desired state. */
  | { readonly type: "asked"; readonly wanted: WantedDaemon | null }
  /** The time to wait is over. */
  | { readonly type: "due" }
  /** The step is done. */
  | { readonly type: "done" }
  | { readonly type: "failed"; readonly problem: Problem };

export interface PlanFacts {
  /** Of the program that runs. */
  readonly version: string;
  /** `x64`, as builds name it. */
  readonly arch: string;
  /** Whether it runs from where an update can put another version beside it. */
  readonly installed: boolean;
  readonly last: EndedUpdate | null;
  /** In [0, 1). */
  readonly random: number;
}

const BACKOFF = { baseMs: 30_000, maxMs: 15 * 60_000 };
/** What fails by the build itself fails again; a damaged download may not. */
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

export function nextUpdate(state: UpdateState, event: UpdateEvent, facts: PlanFacts): UpdateState {
  // The version that takes over is decided on already.
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

function asked(state: UpdateState, wanted: WantedDaemon | null, facts: PlanFacts): UpdateState {
  if (wanted === null || wanted.version === facts.version) return { name: "idle" };
  if (state.name !== "idle" && isSame(state.wanted, wanted)) return state;
  if (isGivenUp(facts.last, wanted)) return { name: "idle" };
  const obstacle = obstacleTo(wanted, facts);
  if (obstacle !== null) return { name: "refused", wanted, problem: obstacle };
  const delayMs = Math.floor(facts.random * wanted.spreadSeconds * 1000);
  if (delayMs === 0) return { name: "downloading", wanted, attempt: 0 };
  return { name: "waiting", wanted, attempt: 0, delayMs, problem: null };
}

function obstacleTo(wanted: WantedDaemon, { arch, installed }: PlanFacts): Problem | null {
  if (!installed) {
    const message = "this daemon was not put here by install.sh, and so cannot put another version beside itself";
    return { reason: "not_installed", message };
  }
  if (fileFor(wanted, arch) !== undefined) return null;
  return { reason: "no_build", message: `there is no build of version ${wanted.version} for ${arch}` };
}

function afterStep(state: UpdateState): UpdateState {
  if (!isStep(state)) return state;
  const next = STEPS[STEPS.indexOf(state.name) + 1];
  // The program ends.
  return next === undefined ? state : step(next, state);
}

function afterFailure(state: Underway, problem: Problem, { random }: PlanFacts): UpdateState {
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

/** Whether this request for this version has failed already. */
function isGivenUp(last: EndedUpdate | null, { version, request }: WantedDaemon): boolean {
  return last !== null && last.state !== "done" && last.wanted === version && last.request === request;
}

/** The file of a build for a processor. */
export function fileFor(wanted: WantedDaemon, arch: string): WantedDaemon["files"][number] | undefined {
  return wanted.files.find((file) => file.arch === arch);
}
