import { type Agent, agentEventSchema, agentSchema } from "@fairlead/protocol/agents";
import type { Platform } from "../client-options.ts";
import type { Context } from "../context.ts";
import { visible } from "../visible.ts";
import { lineOf, stepOf, watch } from "../watch.ts";
import { agentPath } from "./agent-reference.ts";

export interface AgentWatch {
  readonly id: string;
  /** The newest event from before the agent was asked; "" for none. */
  readonly after: string;
  readonly until: (agent: Agent) => boolean;
  /** States from which it does not come there by itself. */
  readonly ends: readonly Agent["lifecycleState"][];
}

/** Shows what an agent does: its events, and how far its image has come. @throws as `watch` does */
export function watchAgent(
  { terminal }: Context,
  host: Platform,
  { id, after, until, ends }: AgentWatch,
): Promise<Agent> {
  return watch(terminal, host, {
    path: agentPath(id),
    schema: agentSchema,
    event: agentEventSchema,
    after,
    until,
    progressOf: ({ lifecycleState, runtime }) => [lineOf(lifecycleState, inSteps(runtime.message))],
    stateOf: ({ lifecycleState }) => lifecycleState,
    endOf: ({ lifecycleState, runtime }) => {
      if (!ends.includes(lifecycleState)) return null;
      const look = `See \`fairlead agent events ${id}\` and \`fairlead agent logs ${id}\`.`;
      return `The agent is ${lifecycleState}: ${visible(runtime.message)}\n${look}`;
    },
    lookAgain: `\`fairlead agent get ${id}\` or \`fairlead agent events ${id}\``,
  });
}

/** Each percent of a pull would be a line. */
function inSteps(message: string): string {
  return message.replace(/\b(\d{1,3}) %/, (_, percent: string) => stepOf(Number(percent)));
}
