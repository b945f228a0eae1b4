import { AGENT_LIFECYCLE_STATES, type AgentLifecycleState } from "@fairlead/protocol/agents";
import { AGENT_LIFECYCLE_EVENTS, nextAgentState } from "./agent-lifecycle.ts";

const MEANINGS: Readonly<Record<AgentLifecycleState, string>> = {
  created: "Never started.",
  starting:
    "Should run but is not ready: its image is being pulled, it is starting, it is waiting for its secrets or its previous node, or its node is not responding.",
  running: "Running, and its health check passes.",
  stopping: "Should no longer run here, but its node has not yet reported it gone.",
  stopped:
    "Not running: a user stopped it, or its node is drained. In the second case it starts again when the node is resumed.",
  failed: "Cannot run without a change by a user: its definition is invalid, or its node was deleted.",
  deleting: "Removed as soon as its node has reported it gone. This state is final.",
};

/** The text of `docs/agent-status.md`; a test compares the two. */
export function agentLifecycleReference(): string {
  return [
    "# Agent status",
    "",
    "Generated from `packages/control-plane/src/fleet/agents/life/agent-lifecycle.ts`. These are the values of an agent's `lifecycleState`; `runtime.message`",
    "gives the reason. Each change is an event with its reason, listed by `/events`. An event without an arrow from a state does not",
    "change that state.",
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
