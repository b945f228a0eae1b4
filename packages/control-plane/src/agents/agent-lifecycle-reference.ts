import { AGENT_LIFECYCLE_STATES, type AgentLifecycleState } from "@fairlead/protocol/agents";
import { AGENT_LIFECYCLE_EVENTS, nextAgentState } from "./agent-lifecycle.ts";

const MEANINGS: Readonly<Record<AgentLifecycleState, string>> = {
  created: "Never started.",
  starting:
    "It is to run, and is not ready: its image is pulled, it starts, it waits for its secrets or for its former node, or its node does not answer.",
  running: "It runs, and its health check passes.",
  stopping: "It is not to run here any more, and its node has not reported it gone.",
  stopped:
    "It does not run: somebody stopped it, or its node is drained; then it starts again when the node is resumed.",
  failed: "It is to run, and will not without somebody: what it is cannot be run, or its node was deleted.",
  deleting: "It goes as soon as its node has reported it gone. Nothing leads on from here.",
};

/** The text of `docs/agent-status.md`; a test compares the two. */
export function agentLifecycleReference(): string {
  return [
    "# Agent status",
    "",
    "Generated from `packages/control-plane/src/agents/agent-lifecycle.ts`. It is an agent's `lifecycleState`; `runtime.message` says why",
    "it is what it is. Entering a state is an event with its reason; `/events` lists them. An event that has no arrow from a state",
    "changes nothing there.",
    "",
    "```mermaid",
    "stateDiagram-v2",
    "  [*] --> created",
    ...AGENT_LIFECYCLE_STATES.flatMap(arrowsFrom),
    "  deleting --> [*]",
    "```",
    "",
    "| state | meaning |",
    "| --- | --- |",
    ...AGENT_LIFECYCLE_STATES.map((state) => `| \`${state}\` | ${MEANINGS[state]} |`),
    "",
  ].join("\n");
}

/** One arrow for each next state, with every event that leads there. */
function arrowsFrom(state: AgentLifecycleState): string[] {
  const events = Map.groupBy(AGENT_LIFECYCLE_EVENTS, (event) => nextAgentState(state, event));
  return Array.from(events)
    .filter(([next]) => next !== null)
    .map(([next, names]) => `  ${state} --> ${next}: ${names.join(", ")}`);
}
