import { type Agent, agentEventSchema, agentSchema, runtimeProviderOf } from "@fairlead/protocol/agents";
import type { CommandContext } from "../context.ts";
import type { PlatformConnection } from "../platform/client-options.ts";
import { visible } from "../terminal/visible.ts";
import { lineOf, stepOf, watch } from "../terminal/watch.ts";
import { agentPath } from "./agent-reference.ts";

export interface AgentWatch {
  readonly id: string;
  /** ID of the newest event before the request; "" if there is none. */
  readonly after: string;
  readonly until: (agent: Agent) => boolean;
  /** States that end the wait with an error. */
  readonly ends: readonly Agent["lifecycleState"][];
  /** Timeout; undefined waits forever. */
  readonly seconds?: number | undefined;
}

/** Fairlead keeps retrying, but after this many failures the user should look. */
const MANY = 3;

/** Prints an agent's events and the progress of its image pull. @throws like `watch` */
export function watchAgent(
  context: CommandContext,
  host: PlatformConnection,
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
      return keepsEnding(agent) || failedSteps >= MANY ? ending(agent, "Fairlead keeps retrying. ") : null;
    },
    lookAgain: `\`fairlead agent get ${id}\` or \`fairlead agent events ${id}\``,
  });
}

function ending({ id, lifecycleState, runtime }: Agent, goesOn: string): string {
  const look = `${goesOn}See \`fairlead agent events ${id}\` and \`fairlead agent logs ${id}\`.`;
  return `The agent is ${lifecycleState}: ${visible(runtime.message)}\n${look}`;
}

/** During a move, the old node's restarts do not count. */
function keepsEnding({ lifecycleState, runtime, runtimeProvider }: Agent): boolean {
  const isThere = runtimeProviderOf(runtime.nodeId) === runtimeProvider;
  return isThere && lifecycleState === "starting" && runtime.restartCount >= MANY;
}

/** Limits the number of progress lines of a pull. */
function inSteps(message: string): string {
  return message.replace(/\b(\d{1,3}) %/, (_, percent: string) => stepOf(Number(percent)));
}
