import type { Clock } from "@fairlead/protocol/clock";
import type { NodeStatus } from "@fairlead/protocol/resources";
import { WORKLOAD_TYPE_ENGINE } from "@fairlead/protocol/workload";
import { FactCache } from "../auth/fact-cache.ts";
import type { EngineDirectory, EngineTarget } from "../inference/ports.ts";
import { presetOf } from "./engine-presets.ts";
import type { NodeRecord } from "./node.ts";
import type { NodeChanges } from "./node-changes.ts";
import type { NodeReport } from "./node-report-store.ts";
import type { NodeStores } from "./node-stores.ts";
import { ENGINE_WORKLOAD } from "./plan-desired.ts";

const MAX_PROJECTS = 10_000;
/** As long as a known key works on while the store does not answer: neither is of use without the other (design §8). */
const GRACE_MS = 5 * 60_000;
/** More nodes than a project is listed with at once. */
const MAX_NODES = 10_000;

const SERVING: ReadonlySet<NodeStatus> = new Set(["active", "degraded"]);

export interface EngineDirectoryDeps {
  readonly stores: NodeStores;
  readonly changes: NodeChanges;
  readonly clock: Clock;
}

/** A project's engines for the inference host: read from the store about once a second, and after every change. */
export class NodeEngineDirectory implements EngineDirectory {
  readonly #stores: NodeStores;
  readonly #byProject: FactCache<readonly EngineTarget[]>;

  constructor({ stores, changes, clock }: EngineDirectoryDeps) {
    this.#stores = stores;
    const read = (projectId: string): Promise<readonly EngineTarget[]> => this.#read(projectId);
    this.#byProject = new FactCache({ read, clock, max: MAX_PROJECTS, graceMs: GRACE_MS });
    changes.listen((change) => this.#byProject.forget(change.projectId));
  }

  async list(projectId: string): Promise<readonly EngineTarget[]> {
    return (await this.#byProject.find(projectId)) ?? [];
  }

  async #read(projectId: string): Promise<readonly EngineTarget[]> {
    const nodes = await this.#stores.nodes.list(projectId, { limit: MAX_NODES, after: null });
    const reports = await this.#stores.reports.reportsOf(projectId);
    return nodes.map((node) => toTarget(node, reports.get(node.id)));
  }
}

function toTarget(node: NodeRecord, report: NodeReport | undefined): EngineTarget {
  const { protocols, chat } = presetOf(node.engineConfig ?? {});
  const engine = report?.reports.find((candidate) => candidate.workloadType === WORKLOAD_TYPE_ENGINE);
  return {
    nodeId: node.id,
    identifier: node.identifier,
    workload: ENGINE_WORKLOAD,
    ready: SERVING.has(node.status) && engine?.ready === true,
    models: engine?.models ?? [],
    since: node.statusSince,
    protocols,
    chat,
  };
}
