import { type Node, type NodeEvent, nodeEventSchema, nodeSchema } from "@fairlead/protocol/resources";
import { WORKLOAD_TYPE_ENGINE } from "@fairlead/protocol/workload";
import type { CommandContext } from "../context.ts";
import type { PlatformConnection } from "../platform/client-options.ts";
import { find, stepOf, watch, watchDeletion } from "../terminal/watch.ts";
import { nodePath } from "./node-reference.ts";

export interface NodeWatch {
  readonly id: string;
  /** ID of the newest event before the request; "" if there is none. */
  readonly after: string;
  readonly until: (node: Node) => boolean;
}

/** Events after which Fairlead does not retry. */
const GIVEN_UP = new Set(["update_rolled_back", "provisioning_failed"]);

/** Prints a node's events and the progress of image pulls. @throws like `watch` */
export function watchNode(
  context: CommandContext,
  host: PlatformConnection,
  { id, after, until }: NodeWatch,
): Promise<Node> {
  return watch(context, host, {
    ...watched(id),
    after,
    until,
    endOf: (node, news) => (news.some(({ kind }) => GIVEN_UP.has(kind)) ? givenUp(node) : null),
  });
}

/** Waits until the node is deleted. @throws like `watchDeletion` */
export function watchNodeDeletion(
  context: CommandContext,
  host: PlatformConnection,
  { id, after }: Omit<NodeWatch, "until">,
): Promise<void> {
  return watchDeletion(context, host, { ...watched(id), after });
}

/** @returns null if there is no such node. */
export function findNode(host: PlatformConnection, id: string): Promise<Node | null> {
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

/** The reason was printed before, with the last event. */
function givenUp({ id, status }: Node): string {
  const advice = status === "failed" ? ` Delete it (\`fairlead node delete ${id}\`) and create another one.` : "";
  return `Failed: the node is ${status}.${advice}`;
}

function pulls({ workloads }: Node): string[] {
  return workloads.flatMap(({ name, desiredImage, progress }) =>
    progress === null ? [] : [`${name}: pulling ${desiredImage}: ${stepOf(progress)}`],
  );
}

/** The desired engine is running and ready; agents are not considered. */
export function isUpToDate({ status, workloads }: Node): boolean {
  const engines = workloads.filter(({ workloadType }) => workloadType === WORKLOAD_TYPE_ENGINE);
  return status === "active" && engines.every(({ upToDate, ready }) => upToDate && ready);
}
