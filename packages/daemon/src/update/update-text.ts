import type { DaemonUpdate } from "@fairlead/protocol/daemon-updates";
import { type Finding, OK } from "../host/condition-rules.ts";
import type { UpdateState } from "./update-plan.ts";
import type { EndedUpdate, Trial } from "./update-record.ts";

/** What is told of an update, to the platform and as a condition of the machine. Pure. */

export interface UpdatePicture {
  readonly state: UpdateState;
  readonly trial: Trial | null;
  readonly last: EndedUpdate | null;
  /** How much of the download is there. */
  readonly percent: number;
  /** When it came to this state; RFC 3339. */
  readonly since: string;
}

/** @returns null where there never was an update */
export function toDaemonUpdate({ state, trial, last, percent, since }: UpdatePicture): DaemonUpdate | null {
  if (trial !== null) {
    const message = `it runs and has to prove itself; else version ${trial.from} takes over again`;
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
    ? `begins within ${seconds} s, so that not all nodes do at once`
    : `${problem.message}; tried again within ${seconds} s`;
}

/** @param isWanted whether the last one's version is still asked for, by the same request */
export function updateFinding({ state, trial, last }: UpdatePicture, isWanted: boolean): Finding {
  if (state.name === "waiting" && state.problem !== null) {
    return { status: "problem", reason: state.problem.reason, message: state.problem.message };
  }
  if (state.name === "refused") return gaveUp(state.wanted.version, "refused", state.problem.message);
  if (state.name !== "idle" || trial !== null || last === null || last.state === "done" || !isWanted) return OK;
  return gaveUp(last.wanted, last.state, last.message);
}

function gaveUp(version: string, reason: string, why: string): Finding {
  return { status: "problem", reason, message: `version ${version} of the daemon was given up: ${why}` };
}
