import type { Node, NodeWorkload } from "@fairlead/protocol/resources";
import { type Fact, factLines } from "../terminal/fact-lines.ts";
import { formatTable } from "../terminal/table.ts";

/** Text output for nodes. */

/** The plan of the user's own machines. */
export const BYO = "byo";

export function nodeTable(nodes: readonly Node[]): string {
  if (nodes.length === 0) return "no nodes; create one with `fairlead node create NAME --preset fairlead-demo`\n";
  const rows = nodes.map((node) => [node.id, node.identifier, node.status, node.operatingSystem, node.statusMessage]);
  return formatTable(["ID", "IDENTIFIER", "STATUS", "SYSTEM", "MESSAGE"], rows);
}

/** All details of one node. */
export function nodeText(node: Node): string {
  return factLines([
    ["node", `${node.name} (${node.id})`],
    ["identifier", node.identifier],
    ["plan", node.planId === BYO ? "" : node.planId],
    ["status", `${node.status} since ${node.statusSince}`],
    ["reason", node.statusMessage],
    ["system", [node.operatingSystem, node.publicIp].filter(Boolean).join(", ")],
    ["daemon", [node.daemonVersion, node.lastSeenAt && `last seen ${node.lastSeenAt}`].filter(Boolean).join(", ")],
    ["daemon update", updateText(node)],
    ...node.workloads.flatMap(workloadFacts),
    ...node.conditions
      .filter(({ status }) => status === "problem" || status === "warning")
      .map(({ type, message, since }): Fact => [`! ${type}`, `${message} (since ${since})`]),
  ]);
}

function updateText({ daemonVersion, desiredDaemonVersion, daemonUpdate }: Node): string {
  const wanted =
    desiredDaemonVersion === null || desiredDaemonVersion === daemonVersion ? "" : `desired: ${desiredDaemonVersion}`;
  if (daemonUpdate === null || daemonUpdate.state === "done") return wanted;
  const { wanted: version, state, message, since } = daemonUpdate;
  return [wanted, `${version} ${state}${message && `: ${message}`} (since ${since})`].filter(Boolean).join("; ");
}

function workloadFacts(workload: NodeWorkload): Fact[] {
  const { name, state, ready, version, models, startedAt, restartCount, lastExit, message } = workload;
  const restarts = restartCount === 0 ? "" : `, restarted ${restartCount} times`;
  return [
    [
      name,
      `${state}${ready ? ", ready" : ", not ready"}${startedAt === null ? "" : `, started ${startedAt}`}${restarts}`,
    ],
    ["  image", imageText(workload)],
    ["  version", version],
    ["  models", models.join(", ")],
    ["  last exit", lastExit === null ? "" : `${lastExit.reason} at ${lastExit.at}`],
    ["  message", message],
  ];
}

function imageText({ image, desiredImage, imageDigest, upToDate }: NodeWorkload): string {
  const runs = [image || "not running", imageDigest.slice(0, 19)].filter(Boolean).join(" ");
  return upToDate ? runs : `${runs}; desired: ${desiredImage}`;
}
