import { rfc3339 } from "@fairlead/protocol/clock";
import type { Node, NodeWorkload } from "@fairlead/protocol/resources";
import type { WorkloadReport, WorkloadSpec } from "@fairlead/protocol/workload";
import type { NodeRecord } from "./node.ts";
import { planWorkloads } from "./plan-desired.ts";
import { toldWorkloads } from "./told-workloads.ts";

/** A node as the interface shows it (§2), with what it shall run and what it says that it runs. Pure; no credential in it, ever. */

export interface NodeView {
  /** Which daemon version is asked for; null: none. */
  readonly desiredDaemonVersion: string | null;
  readonly desired: { readonly generation: number; readonly workloads: readonly WorkloadSpec[] } | null;
  readonly report: { readonly reports: readonly WorkloadReport[] } | null;
}

/** One that was just made: nothing has been heard of it. */
export function toNewNode(record: NodeRecord): Node {
  const workloads = planWorkloads(record.id, record.engineConfig);
  return toNode(record, { desiredDaemonVersion: null, desired: { generation: 1, workloads }, report: null });
}

export function toNode(record: NodeRecord, view: NodeView): Node {
  return {
    id: record.id,
    userId: record.userId,
    projectId: record.projectId,
    status: record.status,
    statusMessage: record.statusMessage,
    statusSince: rfc3339(record.statusSince),
    name: record.name,
    identifier: record.identifier,
    planId: record.planId,
    publicIp: record.publicIp,
    directSecrets: record.directSecrets,
    connectors: [...record.connectors],
    engineConfig: record.engineConfig ?? {},
    createdAt: rfc3339(record.createdAt),
    operatingSystem: record.operatingSystem,
    daemonVersion: record.daemonVersion,
    desiredDaemonVersion: view.desiredDaemonVersion,
    daemonUpdate: record.daemonUpdate,
    lastSeenAt: record.lastSeenAt === null ? null : rfc3339(record.lastSeenAt),
    conditions: [...record.conditions],
    workloads: workloadsOf(record, view),
  };
}

/** What its daemon is told, and of what it is told no more, what still stops. */
function workloadsOf(record: NodeRecord, { desired, report }: NodeView): NodeWorkload[] {
  if (desired === null || record.status === "drained") return [];
  const { generation, workloads } = desired;
  const reports = new Map(report?.reports.map((told) => [told.workloadId, told]));
  const told = new Set(toldWorkloads(record, workloads));
  return workloads
    .filter((spec) => told.has(spec) || reports.has(spec.workloadId))
    .map((spec) => toWorkload({ spec, generation }, reports.get(spec.workloadId) ?? null));
}

interface Wanted {
  readonly spec: WorkloadSpec;
  readonly generation: number;
}

function toWorkload({ spec, generation }: Wanted, told: WorkloadReport | null): NodeWorkload {
  const runs = told !== null && told.startedAt !== null;
  return {
    name: spec.name,
    workloadType: spec.workloadType,
    state: told?.state ?? "pending",
    ready: told?.ready ?? false,
    version: told?.version ?? "",
    image: runs ? told.image : "",
    imageDigest: runs ? told.imageDigest : "",
    generation: runs ? told.generation : null,
    desiredImage: spec.image,
    desiredGeneration: generation,
    upToDate: runs && told.generation >= generation,
    models: told?.models ?? [],
    startedAt: told?.startedAt ?? null,
    restartCount: told?.restartCount ?? 0,
    lastExit: told?.lastExit ?? null,
    message: told?.message ?? "",
    progress: told?.progress ?? null,
  };
}
