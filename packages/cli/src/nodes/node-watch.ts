import { type Node, nodeEventSchema, nodeSchema } from "@fairlead/protocol/resources";
import { WORKLOAD_TYPE_ENGINE } from "@fairlead/protocol/workload";
import type { Platform } from "../client-options.ts";
import type { Context } from "../context.ts";
import { visible } from "../visible.ts";
import { stepOf, watch } from "../watch.ts";
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
    path: nodePath(id),
    schema: nodeSchema,
    event: nodeEventSchema,
    after,
    until,
    progressOf: pulls,
    stateOf: ({ status }) => status,
    endOf: (node, news) => {
      const end = news.find(({ kind }) => GIVEN_UP.has(kind));
      return end === undefined ? null : `${visible(end.message)}\nThe node is ${node.status}.`;
    },
    lookAgain: `\`fairlead node get ${id}\` or \`fairlead node events ${id}\``,
  });
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
