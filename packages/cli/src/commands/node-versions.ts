import { type Node, type NodeWorkload, nodeSchema } from "@fairlead/protocol/resources";
import type { Command } from "commander";
import { addPlatformOptions, addProjectOption, type ClientOptions, platformHost } from "../client-options.ts";
import type { Context } from "../context.ts";
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
  /** Older than the release of this command line. */
  readonly daemonOutdated: boolean;
  /** What is asked for; null: nothing. */
  readonly desiredDaemonVersion: string | null;
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
    .option("--outdated", "only nodes on which something is not what is wanted, or whose daemon is of an older release")
    .addHelpText(
      "after",
      "\nExamples:\n  fairlead node versions\n  fairlead node versions --outdated --json | jq -r '.nodes[].identifier'",
    )
    .action((options: VersionOptions) => showVersions(context, options));
}

async function showVersions(context: Context, options: VersionOptions): Promise<void> {
  const host = platformHost(context, options);
  const list = { path: "/v1/nodes", field: "nodes", item: nodeSchema, query: { projectId: host.projectId() } };
  const all = (await listAll(host, list, options)).map((node) => versionsOf(node, context.version));
  const nodes = options.outdated ? all.filter(({ outdated }) => outdated) : all;
  const none = options.outdated && all.length > 0 ? "every node runs what is wanted\n" : "no nodes yet\n";
  const text = (answer: { nodes: readonly NodeVersions[] }): string =>
    answer.nodes.length === 0 ? none : versionTable(answer.nodes);
  print(context.terminal, { nodes }, { json: options.json, text });
}

function versionsOf(node: Node, release: string): NodeVersions {
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
  const daemonOutdated = node.daemonVersion !== "" && isOlder(node.daemonVersion, release);
  const { desiredDaemonVersion, daemonUpdate } = node;
  const drifts = desiredDaemonVersion !== null && desiredDaemonVersion !== node.daemonVersion;
  const outdated = drifts || daemonOutdated || workloads.some(({ upToDate }) => !upToDate);
  const { id: nodeId, identifier, status, daemonVersion } = node;
  const daemon = { daemonVersion, daemonOutdated, desiredDaemonVersion, daemonUpdate };
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

function daemonCell({ daemonVersion, daemonOutdated, desiredDaemonVersion, daemonUpdate }: NodeVersions): string {
  const runs = `${daemonVersion || "none"}${daemonOutdated ? " (old)" : ""}`;
  if (desiredDaemonVersion === null || desiredDaemonVersion === daemonVersion) return runs;
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
