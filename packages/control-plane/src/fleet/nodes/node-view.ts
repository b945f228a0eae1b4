import { type Node, type NodeWorkload, nodeSchema } from "@fairlead/protocol/resources";
import { rfc3339 } from "@fairlead/protocol/values/clock";
import type { WorkloadReport, WorkloadSpec } from "@fairlead/protocol/workload";
import { planWorkloads } from "./desired/plan-desired.ts";
import type { NodeRecord } from "./node.ts";
import { sentWorkloads } from "./observed/sent-workloads.ts";

/** A node as returned by the API (docs/interface.md §2), with its desired and reported workloads. Pure; never includes a credential. */

export interface NodeView {
  /** The wanted daemon version; null: none. */
  readonly desiredDaemonVersion: string | null;
  readonly desired: { readonly generation: number; readonly workloads: readonly WorkloadSpec[] } | null;
  readonly report: { readonly reports: readonly WorkloadReport[] } | null;
}

/** A new node, without any reports. */
export function toNewNode(record: NodeRecord): Node {
  const workloads = planWorkloads(record.id, record.engineConfig);
  return toNode(record, { desiredDaemonVersion: null, desired: { generation: 1, workloads }, report: null });
}

export function toNode(record: NodeRecord, view: NodeView): Node {
  return {
    ...shownFields(record),
    statusSince: rfc3339(record.statusSince),
    connectors: [...record.connectors],
    engineConfig: record.engineConfig ?? {},
    createdAt: rfc3339(record.createdAt),
    desiredDaemonVersion: view.desiredDaemonVersion,
    lastSeenAt: record.lastSeenAt === null ? null : rfc3339(record.lastSeenAt),
    conditions: [...record.conditions],
    workloads: workloadsOf(record, view),
  };
}

type ShownField = keyof NodeRecord & keyof Node;

/** Only fields that the schema of responses has too, so that keys and other internal columns stay out. */
function shownFields(record: NodeRecord): Pick<NodeRecord, ShownField> {
  const shown = Object.entries(record).filter(([field]) => Object.hasOwn(nodeSchema.shape, field));
  return Object.fromEntries(shown) as Pick<NodeRecord, ShownField>;
}

/** The workloads sent to the daemon, and removed ones that are still stopping. */
function workloadsOf(record: NodeRecord, { desired, report }: NodeView): NodeWorkload[] {
  if (desired === null || record.status === "drained") return [];
  const { generation, workloads } = desired;
  const reports = new Map(report?.reports.map((told) => [told.workloadId, told]));
  const told = new Set(sentWorkloads(record.status, workloads));
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
