import type { EndedUpdate, Trial, UpdateRecord } from "./update-record.ts";

/** How a version on trial is judged. Pure; milliseconds. */

/** Starts that a version on trial has. A reboot takes one too. */
export const TRIAL_STARTS = 3;
/** Nobody is proven before. */
export const STEADY_MS = 10_000;
/** This part of the deadline without the control plane is enough where the version before had none either. */
export const QUIET_SHARE = 0.4;

export interface TrialFacts {
  readonly upMs: number;
  /** Whoever is not proven by then is not. */
  readonly deadlineMs: number;
  /** The control plane has answered hello since the start. */
  readonly linked: boolean;
  /** The reconcile loop has done a round: `answered` with the container engine, `away` without. */
  readonly round: "none" | "away" | "answered";
}

export type Verdict =
  | { readonly verdict: "wait" }
  | { readonly verdict: "good" }
  | { readonly verdict: "bad"; readonly reason: string };

export function judgeTrial(
  { before }: Pick<Trial, "before">,
  { upMs, deadlineMs, linked, round }: TrialFacts,
): Verdict {
  const lacks = [
    ...(linked || (!before.link && upMs >= QUIET_SHARE * deadlineMs) ? [] : ["did not reach the control plane"]),
    ...(round === "answered" || (round === "away" && !before.engine) ? [] : [LACKING_ROUND[round]]),
  ];
  if (lacks.length === 0) return { verdict: upMs >= STEADY_MS ? "good" : "wait" };
  if (upMs < deadlineMs) return { verdict: "wait" };
  return { verdict: "bad", reason: `within ${deadlineMs / 1000} s it ${lacks.join(", and ")}` };
}

const LACKING_ROUND = {
  none: "did not look at its workloads",
  away: "could not ask Docker",
  answered: "",
} as const;

/** What a program that starts has to know of updates. */
export interface StartFacts {
  /** Of the program that starts. */
  readonly version: string;
  /** The guard has turned back. */
  readonly turnedBack: boolean;
  /** RFC 3339. */
  readonly now: string;
}

export type StartOf =
  /** Nothing is on trial. */
  | { readonly kind: "settled"; readonly record: UpdateRecord; readonly rolledBack: EndedUpdate | null }
  | { readonly kind: "on-trial"; readonly record: UpdateRecord; readonly trial: Trial };

/** Where the last update stands when a program starts: whatever was under way when the one before ended, or the power did. */
export function startOf(record: UpdateRecord, { version, turnedBack, now }: StartFacts): StartOf {
  const { trial, last } = record;
  if (trial !== null && trial.to === version) return { kind: "on-trial", record, trial };
  const lost = lostTrial(record, { version, turnedBack });
  // The switch never came: it is asked for again.
  if (lost === null) return { kind: "settled", record: { trial: null, last }, rolledBack: null };
  const rolledBack: EndedUpdate = { ...lost, state: "rolled_back", since: now };
  return { kind: "settled", record: { trial: null, last: rolledBack }, rolledBack };
}

function lostTrial(
  { trial, last }: UpdateRecord,
  { version, turnedBack }: Pick<StartFacts, "version" | "turnedBack">,
): Pick<EndedUpdate, "wanted" | "request" | "message"> | null {
  const ended = `it ended ${TRIAL_STARTS} times before it had proven itself`;
  if (trial !== null && (turnedBack || trial.failed !== null)) {
    return { wanted: trial.to, request: trial.request, message: trial.failed ?? ended };
  }
  // Proven, but the guard was still there when it ended again and again.
  if (turnedBack && last?.state === "done" && last.wanted !== version) {
    return { wanted: last.wanted, request: last.request, message: ended };
  }
  return null;
}
