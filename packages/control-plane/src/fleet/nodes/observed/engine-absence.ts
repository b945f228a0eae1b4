import type { NodeStatus } from "@fairlead/protocol/resources";
import { rfc3339 } from "@fairlead/protocol/values/clock";
import { cutText } from "@fairlead/protocol/values/text";
import type { WorkloadReport } from "@fairlead/protocol/workload";
import type { NodeRecord } from "../node.ts";

/** Why a node's engine takes no calls. Pure. */

const MAX_WORDS = 500;

type Facts = Pick<NodeRecord, "identifier" | "status" | "statusMessage" | "statusSince">;

/** @returns null if the engine takes calls, according to its node's status and last report. */
export function engineAbsence(node: Facts, engine: WorkloadReport | undefined): string | null {
  const words = nodeWords(node) ?? engineWords(node, engine);
  return words === null ? null : cutText(words, MAX_WORDS);
}

function nodeWords({ identifier, status, statusMessage, statusSince }: Facts): string | null {
  const since = rfc3339(statusSince);
  const node = `Node \`${identifier}\``;
  const words: Readonly<Partial<Record<NodeStatus, string>>> = {
    provisioning: `${node} has no daemon yet: ${statusMessage}`,
    bootstrapping: `${node} has no daemon yet: ${statusMessage}`,
    failed: `${node} failed at ${since}: ${statusMessage}`,
    unreachable: `${node} has been unreachable since ${since}. ${statusMessage}`,
    draining: `${node} has been draining since ${since}: ${statusMessage}`,
    drained: `${node} has been drained since ${since}: ${statusMessage}`,
    deleting: `${node} is being deleted.`,
  };
  return words[status] ?? null;
}

function engineWords({ identifier, status, statusSince }: Facts, engine: WorkloadReport | undefined): string | null {
  const name = `The engine of node \`${identifier}\``;
  if (engine === undefined) return `${name} has not been reported yet.`;
  const { state, ready, message } = engine;
  if (ready) return status === "starting" ? `${name} is about to be put into service.` : null;
  const why = ` (since ${rfc3339(statusSince)})${message === "" ? "." : `: ${message}`}`;
  switch (state) {
    case "unknown":
      return `Docker does not respond on node \`${identifier}\`, so its engine cannot be reached${why}`;
    case "pending":
    case "pulling":
      return `${name} is being installed${why}`;
    case "starting":
      return `${name} is starting${why}`;
    case "stopping":
      return `${name} is being restarted${why}`;
    case "backing-off":
      return `${name} has exited and is being restarted${why}`;
    case "failed":
      return `${name} cannot be started${why}`;
    case "running":
      return `${name} is running, but does not respond${why}`;
  }
}
