import type { Connector } from "@fairlead/protocol/agents";
import type { WorkloadSecret } from "@fairlead/protocol/secrets";
import type { AgentRecord } from "./agent.ts";
import { guestPreset } from "./guest-presets.ts";

/** A secret that an agent needs, and how its program gets it. */
export interface AgentNeed {
  readonly name: string;
  readonly as: WorkloadSecret["as"];
  /** The environment variable that holds the value, or the file's path. Null: its name, or none. */
  readonly variable: string | null;
  /** The connector that asks for it; null: its guest or its config does. */
  readonly connector: string | null;
}

/** All that it needs, each once, by name: its config says how where it names one that its connectors or its guest ask for. Pure. */
export function agentNeeds(
  { guest, config }: Pick<AgentRecord, "guest" | "config">,
  connectors: readonly Connector[],
): readonly AgentNeed[] {
  const needs = new Map<string, AgentNeed>();
  for (const { name, as } of guestPreset(guest).secrets) needs.set(name, { name, as, variable: null, connector: null });
  for (const { slug: connector, secrets } of connectors) {
    for (const { name, as, variable = null } of secrets) needs.set(name, { name, as, variable, connector });
  }
  for (const [name, { as }] of Object.entries(config.secrets ?? {})) {
    needs.set(name, { name, as, variable: null, connector: needs.get(name)?.connector ?? null });
  }
  const sorted = [...needs.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  const { registryAuthSecret: name } = config;
  return name === undefined ? sorted : [...sorted, { name, as: "registry", variable: null, connector: null }];
}
