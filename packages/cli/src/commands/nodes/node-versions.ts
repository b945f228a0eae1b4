import { type Node, type NodeWorkload, nodeSchema } from "@fairlead/protocol/resources";
import type { Command } from "commander";
import { z } from "zod";
import type { CommandContext } from "../../context.ts";
import {
  addPlatformOptions,
  addProjectOption,
  type ClientOptions,
  platformHost,
} from "../../platform/client-options.ts";
import { callJson, type Host } from "../../platform/http-client.ts";
import { addLimitOption, type ListOptions, listAll } from "../../terminal/list-all.ts";
import { print } from "../../terminal/output.ts";
import { formatTable } from "../../terminal/table.ts";

interface VersionOptions extends ClientOptions, ListOptions {
  readonly outdated?: boolean;
}

interface NodeVersions {
  readonly nodeId: string;
  readonly identifier: string;
  readonly status: Node["status"];
  readonly daemonVersion: string;
  /** Null: no version is requested. */
  readonly desiredDaemonVersion: string | null;
  /** The requested version, else the newest build on offer, else the server's release. */
  readonly expectedDaemonVersion: string;
  /** Not the requested version or, if none is requested, older than the expected one. */
  readonly daemonOutdated: boolean;
  readonly daemonUpdate: Node["daemonUpdate"];
  readonly workloads: readonly WorkloadVersions[];
  readonly outdated: boolean;
}

type WorkloadVersions = Pick<
  NodeWorkload,
  "name" | "version" | "image" | "imageDigest" | "generation" | "desiredImage" | "desiredGeneration" | "upToDate"
> & { readonly since: string | null };

/** `fairlead node versions`. */
export function addNodeVersionsCommand(node: Command, context: CommandContext): void {
  addLimitOption(addProjectOption(addPlatformOptions(node.command("versions"))))
    .description(
      "show the daemon, engine and agent versions running on each node, and where they differ from the desired ones",
    )
    .option(
      "--outdated",
      "only nodes that differ from the desired state or have an older daemon than the platform offers",
    )
    .addHelpText(
      "after",
      "\nExamples:\n  fairlead node versions\n  fairlead node versions --outdated --json | jq -r '.nodes[].identifier'",
    )
    .action((options: VersionOptions) => showVersions(context, options));
}

async function showVersions(context: CommandContext, options: VersionOptions): Promise<void> {
  const host = platformHost(context, options);
  const list = { path: "/v1/nodes", field: "nodes", item: nodeSchema, query: { projectId: host.projectId() } };
  const [listed, newest] = await Promise.all([listAll(host, list, options), newestDaemon(host)]);
  const all = listed.map((node) => versionsOf(node, newest));
  // A node without a daemon cannot be outdated; `node list` shows it.
  const nodes = options.outdated ? all.filter(({ outdated, daemonVersion }) => outdated && daemonVersion !== "") : all;
  const none = options.outdated && all.length > 0 ? "all nodes are up to date\n" : "no nodes\n";
  const text = (answer: { nodes: readonly NodeVersions[] }): string =>
    answer.nodes.length === 0 ? none : versionTable(answer.nodes);
  print(context.terminal, { nodes }, { json: options.json, text });
}

const buildsSchema = z.object({
  daemonBuilds: z.array(z.object({ version: z.string() })),
  serverVersion: z.string(),
});

/** The version expected of nodes without a requested version. */
async function newestDaemon(host: Host): Promise<string> {
  const { daemonBuilds, serverVersion } = await callJson(host, { path: "/v1/daemon-builds?pageSize=1" }, buildsSchema);
  return daemonBuilds[0]?.version ?? serverVersion;
}

function versionsOf(node: Node, newest: string): NodeVersions {
  const workloads = node.workloads.map((workload) => ({
    name: workload.name,
    version: workload.version,
    image: workload.image,
    imageDigest: workload.imageDigest,
    generation: workload.generation,
    desiredImage: workload.desiredImage,
    desiredGeneration: workload.desiredGeneration,
    upToDate: workload.upToDate,
    since: workload.startedAt,
  }));
  const { id: nodeId, identifier, status, daemonVersion, desiredDaemonVersion, daemonUpdate } = node;
  const daemonOutdated =
    desiredDaemonVersion === null
      ? daemonVersion !== "" && isOlder(daemonVersion, newest)
      : daemonVersion !== desiredDaemonVersion;
  const expectedDaemonVersion = desiredDaemonVersion ?? newest;
  const daemon = { daemonVersion, desiredDaemonVersion, expectedDaemonVersion, daemonOutdated, daemonUpdate };
  const outdated = daemonOutdated || workloads.some(({ upToDate }) => !upToDate);
  return { nodeId, identifier, status, ...daemon, workloads, outdated };
}

/** Compares two releases such as `1.2.3`. */
export function isOlder(version: string, release: string): boolean {
  const parts = (text: string): number[] => text.split(/[.+-]/, 3).map(Number);
  const [ours, theirs] = [parts(version), parts(release)];
  const at = ours.findIndex((part, index) => part !== theirs[index]);
  return at >= 0 && (ours[at] ?? 0) < (theirs[at] ?? 0);
}

function versionTable(nodes: readonly NodeVersions[]): string {
  const rows = nodes.flatMap((node) => {
    const head = [node.identifier, node.status, daemonCell(node)];
    if (node.workloads.length === 0) return [[...head, "", "", "", "", "", ""]];
    return node.workloads.map((workload) => [...head, ...workloadCells(workload)]);
  });
  return formatTable(["NODE", "STATUS", "DAEMON", "WORKLOAD", "VERSION", "IMAGE", "DIGEST", "SINCE", "DRIFT"], rows);
}

function daemonCell(node: NodeVersions): string {
  const { daemonVersion, desiredDaemonVersion, expectedDaemonVersion, daemonUpdate } = node;
  const runs = daemonVersion || "none";
  if (!node.daemonOutdated) return runs;
  if (desiredDaemonVersion === null) return `${runs} (older than ${expectedDaemonVersion})`;
  const state = daemonUpdate?.wanted === desiredDaemonVersion ? daemonUpdate.state : "not started";
  return `${runs} ! desired: ${desiredDaemonVersion} (${state})`;
}

function workloadCells(workload: WorkloadVersions): string[] {
  const { name, version, image, imageDigest, since, upToDate } = workload;
  return [name, version, image || "none", imageDigest.slice(0, 19), since ?? "", upToDate ? "" : driftOf(workload)];
}

function driftOf({ image, desiredImage, generation, desiredGeneration }: WorkloadVersions): string {
  if (image !== desiredImage) return `! desired: ${desiredImage}`;
  return `! desired: generation ${desiredGeneration}, running: ${generation}`;
}
