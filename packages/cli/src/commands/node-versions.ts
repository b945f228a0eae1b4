import { type Node, type NodeWorkload, nodeSchema } from "@fairlead/protocol/resources";
import type { Command } from "commander";
import { z } from "zod";
import { addPlatformOptions, addProjectOption, type ClientOptions, platformHost } from "../client-options.ts";
import type { Context } from "../context.ts";
import { callJson, type Host } from "../http-client.ts";
import { addLimitOption, type ListOptions, listAll } from "../list-all.ts";
import { print } from "../output.ts";
import { formatTable } from "../table.ts";

interface VersionOptions extends ClientOptions, ListOptions {
  readonly outdated?: boolean;
}

interface NodeVersions {
  readonly nodeId: string;
  readonly identifier: string;
  readonly status: Node["status"];
  readonly daemonVersion: string;
  /** What is asked for; null: nothing. */
  readonly desiredDaemonVersion: string | null;
  /** What it is measured by: what is asked for, else the newest build that is offered, else the server's release. */
  readonly expectedDaemonVersion: string;
  /** Not the version that is asked for; where none is: older than what is expected. */
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
export function addNodeVersionsCommand(node: Command, context: Context): void {
  addLimitOption(addProjectOption(addPlatformOptions(node.command("versions"))))
    .description("show which daemon, engine and agents every node really runs, and what of it is not what is wanted")
    .option(
      "--outdated",
      "only nodes on which something is not what is wanted, or whose daemon is older than the platform offers",
    )
    .addHelpText(
      "after",
      "\nExamples:\n  fairlead node versions\n  fairlead node versions --outdated --json | jq -r '.nodes[].identifier'",
    )
    .action((options: VersionOptions) => showVersions(context, options));
}

async function showVersions(context: Context, options: VersionOptions): Promise<void> {
  const host = platformHost(context, options);
  const list = { path: "/v1/nodes", field: "nodes", item: nodeSchema, query: { projectId: host.projectId() } };
  const [listed, newest] = await Promise.all([listAll(host, list, options), newestDaemon(host)]);
  const all = listed.map((node) => versionsOf(node, newest));
  const nodes = options.outdated ? all.filter(({ outdated }) => outdated) : all;
  const none = options.outdated && all.length > 0 ? "every node runs what is wanted\n" : "no nodes yet\n";
  const text = (answer: { nodes: readonly NodeVersions[] }): string =>
    answer.nodes.length === 0 ? none : versionTable(answer.nodes);
  print(context.terminal, { nodes }, { json: options.json, text });
}

const buildsSchema = z.object({
  daemonBuilds: z.array(z.object({ version: z.string() })),
  serverVersion: z.string(),
});

/** What nodes can have of which no version is asked for. */
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

/** By the numbers of two releases, `1.2.3`. */
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
  return formatTable(["NODE", "STATUS", "DAEMON", "WORKLOAD", "VERSION", "RUNS", "DIGEST", "SINCE", "DRIFT"], rows);
}

function daemonCell(node: NodeVersions): string {
  const { daemonVersion, desiredDaemonVersion, expectedDaemonVersion, daemonUpdate } = node;
  const runs = daemonVersion || "none";
  if (!node.daemonOutdated) return runs;
  if (desiredDaemonVersion === null) return `${runs} (older than ${expectedDaemonVersion})`;
  const state = daemonUpdate?.wanted === desiredDaemonVersion ? daemonUpdate.state : "not begun";
  return `${runs} ! wanted: ${desiredDaemonVersion} (${state})`;
}

function workloadCells(workload: WorkloadVersions): string[] {
  const { name, version, image, imageDigest, since, upToDate } = workload;
  return [name, version, image || "nothing", imageDigest.slice(0, 19), since ?? "", upToDate ? "" : driftOf(workload)];
}

function driftOf({ image, desiredImage, generation, desiredGeneration }: WorkloadVersions): string {
  if (image !== desiredImage) return `! wanted: ${desiredImage}`;
  return `! wanted: generation ${desiredGeneration}, runs: ${generation}`;
}
