import { type Node, type NodeEvent, nodeEventSchema, nodeSchema } from "@fairlead/protocol/resources";
import { WORKLOAD_TYPE_ENGINE } from "@fairlead/protocol/workload";
import type { Platform } from "../client-options.ts";
import type { Context } from "../context.ts";
import { find, stepOf, watch, watchDeletion } from "../watch.ts";
import { nodePath } from "./node-reference.ts";

export interface NodeWatch {
  readonly id: string;
  /** The newest event from before the node was asked; "" for none. */
  readonly after: string;
  readonly until: (node: Node) => boolean;
}

/** Nothing better comes by itself after these. */
const GIVEN_UP = new Set(["update_rolled_back", "provisioning_failed"]);

/** Shows what a node does: its events, and how far images have come. @throws as `watch` does */
export function watchNode(context: Context, host: Platform, { id, after, until }: NodeWatch): Promise<Node> {
  return watch(context, host, {
    ...watched(id),
    after,
    until,
    endOf: (node, news) => (news.some(({ kind }) => GIVEN_UP.has(kind)) ? givenUp(node) : null),
  });
}

/** Until there is no such node any more. @throws as `watchDeletion` does */
export function watchNodeDeletion(
  context: Context,
  host: Platform,
  { id, after }: Omit<NodeWatch, "until">,
): Promise<void> {
  return watchDeletion(context, host, { ...watched(id), after });
}

/** Null: there is none. */
export function findNode(host: Platform, id: string): Promise<Node | null> {
  return find(host, watched(id));
}

function watched(id: string) {
  return {
    path: nodePath(id),
    schema: nodeSchema,
    event: nodeEventSchema,
    progressOf: pulls,
    stateOf: ({ status }: NodeEvent) => status,
    lookAgain: `\`fairlead node get ${id}\` or \`fairlead node events ${id}\``,
  } as const;
}

/** Why stands above, as the last of what the node did. */
function givenUp({ id, status }: Node): string {
  const advice = status === "failed" ? ` Delete it (\`fairlead node delete ${id}\`), and create another one.` : "";
  return `Given up: the node is ${status}.${advice}`;
}

function pulls({ workloads }: Node): string[] {
  return workloads.flatMap(({ name, desiredImage, progress }) =>
    progress === null ? [] : [`${name}: pulling ${desiredImage}: ${stepOf(progress)}`],
  );
}

/** The engine that was asked for runs, and is ready. What agents beside it do is watched of them. */
export function isUpToDate({ status, workloads }: Node): boolean {
  const engines = workloads.filter(({ workloadType }) => workloadType === WORKLOAD_TYPE_ENGINE);
  return status === "active" && engines.every(({ upToDate, ready }) => upToDate && ready);
}
