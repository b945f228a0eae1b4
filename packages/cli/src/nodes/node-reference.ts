import { z } from "zod";
import type { Platform } from "../client-options.ts";
import { callJson } from "../http-client.ts";

const foundSchema = z.object({ id: z.string() });

/** How every command takes a node. */
export const NODE_ARGUMENT = ["<node>", "the node's id, or its identifier in the project"] as const;

/** Ids begin with `nod_`; identifiers hold no underscore. */
export async function nodeIdOf(host: Platform, name: string): Promise<string> {
  if (name.startsWith("nod_")) return name;
  const query = new URLSearchParams({ projectId: host.projectId() });
  const path = `/v1/nodes/by-slug/${encodeURIComponent(name)}?${query.toString()}`;
  return (await callJson(host, { path }, foundSchema)).id;
}

export function nodePath(id: string): string {
  return `/v1/nodes/${encodeURIComponent(id)}`;
}
