import type { NodeStatus } from "@fairlead/protocol/resources";
import { WORKLOAD_TYPE_ENGINE } from "@fairlead/protocol/workload";
import { LRUCache } from "lru-cache";
import type { EngineDirectory, EngineTarget } from "../inference/ports.ts";
import type { NodeRecord } from "./node.ts";
import type { NodeChanges } from "./node-changes.ts";
import type { NodeReport } from "./node-report-store.ts";
import type { NodeStores } from "./node-stores.ts";
import { ENGINE_WORKLOAD } from "./plan-desired.ts";

/** At most this old even if a change were missed (design §5, Revocation: one second). */
const MAX_AGE_MS = 1000;
const MAX_PROJECTS = 10_000;
/** More nodes than a project is listed with at once. */
const MAX_NODES = 10_000;

const SERVING: ReadonlySet<NodeStatus> = new Set(["active", "degraded"]);

/** A project's engines for the inference host: read from the store once a second at most, and on every change. */
export class NodeEngineDirectory implements EngineDirectory {
  readonly #stores: NodeStores;
  readonly #byProject = new LRUCache<string, Promise<readonly EngineTarget[]>>({
    max: MAX_PROJECTS,
    ttl: MAX_AGE_MS,
  });

  constructor(stores: NodeStores, changes: NodeChanges) {
    this.#stores = stores;
    changes.listen((change) => this.#byProject.delete(change.projectId));
  }

  async find(projectId: string, identifier: string): Promise<EngineTarget | null> {
    const engines = await this.list(projectId);
    return engines.find((engine) => engine.identifier === identifier) ?? null;
  }

  list(projectId: string): Promise<readonly EngineTarget[]> {
    const known = this.#byProject.get(projectId);
    if (known) return known;
    const read = this.#read(projectId);
    this.#byProject.set(projectId, read);
    // A failed read must not be served for its whole second.
    read.catch(() => this.#byProject.delete(projectId));
    return read;
  }

  async #read(projectId: string): Promise<readonly EngineTarget[]> {
    const nodes = await this.#stores.nodes.list(projectId, { limit: MAX_NODES, after: null });
    const reports = await this.#stores.reports.reportsOf(projectId);
    return nodes.map((node) => toTarget(node, reports.get(node.id)));
  }
}

function toTarget(node: NodeRecord, report: NodeReport | undefined): EngineTarget {
  const engine = report?.reports.find((candidate) => candidate.workloadType === WORKLOAD_TYPE_ENGINE);
  return {
    nodeId: node.id,
    identifier: node.identifier,
    workload: ENGINE_WORKLOAD,
    ready: SERVING.has(node.status) && engine?.ready === true,
    models: engine?.models ?? [],
    since: node.statusSince,
  };
}
