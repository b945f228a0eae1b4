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

/** After so many failures it is tried again and again, but somebody should look. */
const MANY = 3;

/** Shows what an agent does: its events, and how far its image has come. @throws as `watch` does */
export function watchAgent(
  context: Context,
  host: Platform,
  { id, after, until, ends, seconds }: AgentWatch,
): Promise<Agent> {
  let failedSteps = 0;
  return watch(context, host, {
    path: agentPath(id),
    schema: agentSchema,
    event: agentEventSchema,
    after,
    until,
    seconds,
    progressOf: ({ lifecycleState, runtime }) => [lineOf(lifecycleState, inSteps(runtime.message))],
    stateOf: ({ lifecycleState }) => lifecycleState,
    endOf: (agent, news) => {
      failedSteps += news.filter(({ kind }) => kind === "step_failed").length;
      if (ends.includes(agent.lifecycleState)) return ending(agent, "");
      return keepsEnding(agent) || failedSteps >= MANY ? ending(agent, "It is tried again and again. ") : null;
    },
    lookAgain: `\`fairlead agent get ${id}\` or \`fairlead agent events ${id}\``,
  });
}

function ending({ id, lifecycleState, runtime }: Agent, goesOn: string): string {
  const look = `${goesOn}See \`fairlead agent events ${id}\` and \`fairlead agent logs ${id}\`.`;
  return `The agent is ${lifecycleState}: ${visible(runtime.message)}\n${look}`;
}

/** What is seen of a node that it leaves says nothing of the one that it goes to. */
function keepsEnding({ lifecycleState, runtime, runtimeProvider }: Agent): boolean {
  const isThere = runtimeProviderOf(runtime.nodeId) === runtimeProvider;
  return isThere && lifecycleState === "starting" && runtime.restartCount >= MANY;
}

/** Each percent of a pull would be a line. */
function inSteps(message: string): string {
  return message.replace(/\b(\d{1,3}) %/, (_, percent: string) => stepOf(Number(percent)));
}
