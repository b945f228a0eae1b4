import { z } from "zod";
import type { PlatformConnection } from "../platform/client-options.ts";
import { callJson } from "../platform/http-client.ts";

const foundSchema = z.object({ id: z.string() });

/** The node argument of all commands. */
export const NODE_ARGUMENT = ["<node>", "the node's ID, or its identifier in the project"] as const;

/** IDs start with `nod_`; identifiers contain no underscore. */
export async function nodeIdOf(host: PlatformConnection, name: string): Promise<string> {
  if (name.startsWith("nod_")) return name;
  const query = new URLSearchParams({ projectId: host.projectId() });
  const path = `/v1/nodes/by-slug/${encodeURIComponent(name)}?${query.toString()}`;
  return (await callJson(host, { path }, foundSchema)).id;
}

export function nodePath(id: string): string {
  return `/v1/nodes/${encodeURIComponent(id)}`;
}
