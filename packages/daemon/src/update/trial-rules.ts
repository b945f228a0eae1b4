import type { EndedUpdate, Trial, UpdateRecord } from "./update-record.ts";

/** Decides whether a version passes its trial. Pure; times in milliseconds. */

/** Starts allowed during a trial, including reboots. */
export const TRIAL_STARTS = 3;
/** Minimum length of a trial. */
export const STEADY_MS = 10_000;
/** Share of the deadline after which a missing link is accepted if the old version had none either. */
export const QUIET_SHARE = 0.4;

export interface TrialFacts {
  readonly upMs: number;
  /** Maximum length of a trial. */
  readonly deadlineMs: number;
  /** The link was established since the start. */
  readonly linked: boolean;
  /** Result of the reconcile loop: `answered` with the container engine, `away` without. */
  readonly round: "none" | "away" | "answered";
}

export type TrialVerdict =
  | { readonly verdict: "wait" }
  | { readonly verdict: "good" }
  | { readonly verdict: "bad"; readonly reason: string };

export function judgeTrial(
  { before }: Pick<Trial, "before">,
  { upMs, deadlineMs, linked, round }: TrialFacts,
): TrialVerdict {
  const lacks = [
    ...(linked || (!before.link && upMs >= QUIET_SHARE * deadlineMs) ? [] : ["did not reach the control plane"]),
    ...(round === "answered" || (round === "away" && !before.engine) ? [] : [LACKING_ROUND[round]]),
  ];
  if (lacks.length === 0) return { verdict: upMs >= STEADY_MS ? "good" : "wait" };
  if (upMs < deadlineMs) return { verdict: "wait" };
  return { verdict: "bad", reason: `within ${deadlineMs / 1000} s it ${lacks.join(", and ")}` };
}

const LACKING_ROUND = {
  none: "did not check its workloads",
  away: "could not connect to Docker",
  answered: "",
} as const;

/** Update facts at startup. */
export interface StartFacts {
  /** Version of the starting program. */
  readonly version: string;
  /** The guard rolled back. */
  readonly turnedBack: boolean;
  /** RFC 3339. */
  readonly now: string;
}

export type StartOf =
  /** No trial. */
  | { readonly kind: "settled"; readonly record: UpdateRecord; readonly rolledBack: EndedUpdate | null }
  | { readonly kind: "on-trial"; readonly record: UpdateRecord; readonly trial: Trial };

/** Determines the state of the last update at startup, whatever was interrupted by a crash or power cut. */
export function startOf(record: UpdateRecord, { version, turnedBack, now }: StartFacts): StartOf {
  const { trial, last } = record;
  if (trial !== null && trial.to === version) return { kind: "on-trial", record, trial };
  const lost = lostTrial(record, { version, turnedBack });
  // The switch did not happen; the update is requested again.
  if (lost === null) return { kind: "settled", record: { trial: null, last }, rolledBack: null };
  const rolledBack: EndedUpdate = { ...lost, state: "rolled_back", since: now };
  return { kind: "settled", record: { trial: null, last: rolledBack }, rolledBack };
}

function lostTrial(
  { trial, last }: UpdateRecord,
  { version, turnedBack }: Pick<StartFacts, "version" | "turnedBack">,
): Pick<EndedUpdate, "wanted" | "request" | "message"> | null {
  const ended = `it failed ${TRIAL_STARTS} times during its trial`;
  if (trial !== null && (turnedBack || trial.failed !== null)) {
    return { wanted: trial.to, request: trial.request, message: trial.failed ?? ended };
  }
  // It passed, but kept crashing before the guard was removed.
  if (turnedBack && last?.state === "done" && last.wanted !== version) {
    return { wanted: last.wanted, request: last.request, message: ended };
  }
  return null;
}
