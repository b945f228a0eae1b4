import { type DaemonUpdate, MAX_UPDATE_MESSAGE } from "@fairlead/protocol/daemon-updates";
import { cutText } from "@fairlead/protocol/values/text";
import { type ConditionFinding, OK } from "../host/condition-rules.ts";
import type { UpdateState } from "./update-plan.ts";
import type { EndedUpdate, Trial } from "./update-record.ts";

/** Texts about an update, for the platform and the machine condition. Pure. */

export interface UpdatePicture {
  readonly state: UpdateState;
  readonly trial: Trial | null;
  readonly last: EndedUpdate | null;
  /** Download progress in percent. */
  readonly percent: number;
  /** When it entered this state; RFC 3339. */
  readonly since: string;
}

/** @returns null if there was no update */
export function toDaemonUpdate(picture: UpdatePicture): DaemonUpdate | null {
  const update = updateOf(picture);
  return update && { ...update, message: cutText(update.message, MAX_UPDATE_MESSAGE) };
}

function updateOf({ state, trial, last, percent, since }: UpdatePicture): DaemonUpdate | null {
  if (trial !== null) {
    const message = `running on trial; rolls back to version ${trial.from} on failure`;
    return { wanted: trial.to, state: "trial", message, since };
  }
  switch (state.name) {
    case "idle":
      return last && { wanted: last.wanted, state: last.state, message: last.message, since: last.since };
    case "waiting":
      return { wanted: state.wanted.version, state: "waiting", message: waitText(state), since };
    case "refused":
      return { wanted: state.wanted.version, state: "refused", message: state.problem.message, since };
    case "downloading":
      return { wanted: state.wanted.version, state: "downloading", message: `${percent} %`, since };
    case "unpacking":
    case "checking":
    case "restarting":
      return { wanted: state.wanted.version, state: state.name, message: "", since };
  }
}

function waitText({ problem, delayMs }: Extract<UpdateState, { name: "waiting" }>): string {
  const seconds = Math.ceil(delayMs / 1000);
  return problem === null
    ? `starts within ${seconds} s (staggered across nodes)`
    : `${problem.message}; retrying within ${seconds} s`;
}

/** @param isWanted whether the last update's version is still requested by the same request */
export function updateFinding({ state, trial, last }: UpdatePicture, isWanted: boolean): ConditionFinding {
  if (state.name === "waiting" && state.problem !== null) {
    return { status: "problem", reason: state.problem.reason, message: state.problem.message };
  }
  if (state.name === "refused") return gaveUp(state.wanted.version, "refused", state.problem.message);
  if (state.name !== "idle" || trial !== null || last === null || last.state === "done" || !isWanted) return OK;
  return gaveUp(last.wanted, last.state, last.message);
}

function gaveUp(version: string, reason: string, why: string): ConditionFinding {
  return { status: "problem", reason, message: `the update to daemon version ${version} failed: ${why}` };
}
