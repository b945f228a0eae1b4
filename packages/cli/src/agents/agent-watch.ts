import { type Agent, agentEventSchema, agentSchema, runtimeProviderOf } from "@fairlead/protocol/agents";
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
  /** How long it is looked at; undefined: for ever. */
  readonly seconds?: number | undefined;
}

/** One that has ended so often is started again and again, but somebody should look. */
const MANY_RESTARTS = 3;

/** Shows what an agent does: its events, and how far its image has come. @throws as `watch` does */
export function watchAgent(
  context: Context,
  host: Platform,
  { id, after, until, ends, seconds }: AgentWatch,
): Promise<Agent> {
  return watch(context, host, {
    path: agentPath(id),
    schema: agentSchema,
    event: agentEventSchema,
    after,
    until,
    seconds,
    progressOf: ({ lifecycleState, runtime }) => [lineOf(lifecycleState, inSteps(runtime.message))],
    stateOf: ({ lifecycleState }) => lifecycleState,
    endOf: (agent) => endOf(agent, ends),
    lookAgain: `\`fairlead agent get ${id}\` or \`fairlead agent events ${id}\``,
  });
}

function endOf(agent: Agent, ends: AgentWatch["ends"]): string | null {
  const { id, lifecycleState, runtime } = agent;
  if (!ends.includes(lifecycleState) && !keepsEnding(agent)) return null;
  const { lastExit } = runtime;
  const how = keepsEnding(agent) && lastExit !== null ? ` It keeps ending: ${lastExit.reason}.` : "";
  const look = `See \`fairlead agent events ${id}\` and \`fairlead agent logs ${id}\`.`;
  return `The agent is ${lifecycleState}: ${visible(runtime.message + how)}\n${look}`;
}

/** What is seen of a node that it leaves says nothing of the one that it goes to. */
function keepsEnding({ lifecycleState, runtime, runtimeProvider }: Agent): boolean {
  const isThere = runtimeProviderOf(runtime.nodeId) === runtimeProvider;
  return isThere && lifecycleState === "starting" && runtime.restartCount >= MANY_RESTARTS;
}

/** Each percent of a pull would be a line. */
function inSteps(message: string): string {
  return message.replace(/\b(\d{1,3}) %/, (_, percent: string) => stepOf(Number(percent)));
}
