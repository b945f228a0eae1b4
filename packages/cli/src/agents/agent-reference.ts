import { agentSchema } from "@fairlead/protocol/agents";
import { CliError } from "../cli-error.ts";
import type { Platform } from "../client-options.ts";
import { listAll } from "../list-all.ts";
import { visible } from "../visible.ts";

/** How every command takes an agent. */
export const AGENT_ARGUMENT = [
  "<agent>",
  "the agent's id, or its name where the project has one of that name",
] as const;

/** Names of agents need not be unique, so several of one name are told apart by their ids alone. @throws CliError */
export async function agentIdOf(host: Platform, name: string): Promise<string> {
  if (name.startsWith("agt_")) return name;
  const query = { projectId: host.projectId() };
  const agents = await listAll(host, { path: "/v1/agents", field: "agents", item: agentSchema, query }, {});
  const [found, ...others] = agents.filter((agent) => agent.name === name).map(({ id }) => id);
  if (found === undefined) {
    throw new CliError(
      `This project has no agent named "${visible(name)}"; \`fairlead agent list\` shows those it has.`,
    );
  }
  if (others.length === 0) return found;
  throw new CliError(`Several agents are named "${visible(name)}". Say which: ${[found, ...others].join(", ")}.`);
}

export function agentPath(id: string): string {
  return `/v1/agents/${encodeURIComponent(id)}`;
}

/** @throws CliError */
export async function agentPathOf(host: Platform, name: string): Promise<string> {
  return agentPath(await agentIdOf(host, name));
}
