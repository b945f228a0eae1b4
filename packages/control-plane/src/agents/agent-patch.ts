import { isDeepStrictEqual } from "node:util";
import type { AgentRecord } from "./agent.ts";

/** `PATCH /v1/agents/{id}`: which fields change, and to what. What is absent stays as it is; lists and the config are replaced whole. Pure. */

type Written = Pick<AgentRecord, "name" | "guest" | "nodeId" | "connectorSlugs" | "config">;

export type AgentPatch = { readonly [F in keyof Written]?: Written[F] | undefined };

/** By their names on the wire. */
const FIELDS = {
  name: "name",
  guest: "guest",
  nodeId: "runtimeProvider",
  connectorSlugs: "connectorSlugs",
  config: "config",
} as const satisfies Record<keyof Written, string>;

export interface PatchedAgent {
  readonly fields: Written;
  /** Those that differ from before, by their names on the wire. */
  readonly changed: readonly string[];
}

export function patchAgent(agent: AgentRecord, patch: AgentPatch): PatchedAgent {
  const { connectorSlugs = agent.connectorSlugs } = patch;
  const fields: Written = {
    name: patch.name ?? agent.name,
    guest: patch.guest ?? agent.guest,
    nodeId: patch.nodeId ?? agent.nodeId,
    connectorSlugs: [...new Set(connectorSlugs)],
    config: patch.config ?? agent.config,
  };
  const names = Object.keys(FIELDS) as (keyof Written)[];
  const changed = names.filter((name) => !isDeepStrictEqual(fields[name], agent[name])).map((name) => FIELDS[name]);
  return { fields, changed };
}
