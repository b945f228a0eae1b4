import { agentSchema } from "@fairlead/protocol/agents";
import { CliError } from "../cli-error.ts";
import type { PlatformConnection } from "../platform/client-options.ts";
import { listAll } from "../terminal/list-all.ts";
import { visible } from "../terminal/visible.ts";

/** The agent argument of all commands. */
export const AGENT_ARGUMENT = ["<agent>", "the agent's ID, or its name if the name is unique in the project"] as const;

/** Agent names need not be unique. @throws CliError if the name is unknown or ambiguous */
export async function agentIdOf(host: PlatformConnection, name: string): Promise<string> {
  if (name.startsWith("agt_")) return name;
  const query = { projectId: host.projectId() };
  const agents = await listAll(host, { path: "/v1/agents", field: "agents", item: agentSchema, query }, {});
  const [found, ...others] = agents.filter((agent) => agent.name === name).map(({ id }) => id);
  if (found === undefined) {
    throw new CliError(`This project has no agent named "${visible(name)}". \`fairlead agent list\` lists its agents.`);
  }
  if (others.length === 0) return found;
  throw new CliError(
    `Several agents are named "${visible(name)}". Use one of these IDs: ${[found, ...others].join(", ")}.`,
  );
}

export function agentPath(id: string): string {
  return `/v1/agents/${encodeURIComponent(id)}`;
}

/** @throws CliError */
export async function agentPathOf(host: PlatformConnection, name: string): Promise<string> {
  return agentPath(await agentIdOf(host, name));
}
