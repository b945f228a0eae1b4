import type { EngineDirectory, EngineTarget } from "@fairlead/inference/ports/ports";
import type { Clock } from "@fairlead/protocol/values/clock";
import { WORKLOAD_TYPE_ENGINE } from "@fairlead/protocol/workload";
import { FactCache } from "../../../access/auth/fact-cache.ts";
import { presetOf } from "../desired/engine-presets.ts";
import { ENGINE_WORKLOAD } from "../desired/plan-desired.ts";
import type { NodeRecord } from "../node.ts";
import type { NodeChangeFeed } from "../node-change-feed.ts";
import type { NodeReport } from "../records/node-report-store.ts";
import type { NodeStores } from "../records/node-stores.ts";
import { engineAbsence } from "./engine-absence.ts";

const MAX_PROJECTS = 10_000;
/** As long as known keys stay valid while the store does not respond, since one is useless without the other (decisions/0013). */
const GRACE_MS = 5 * 60_000;
/** More nodes than one project can have. */
const MAX_NODES = 10_000;

export interface EngineDirectoryDeps {
  readonly stores: NodeStores;
  readonly changes: NodeChangeFeed;
  readonly clock: Clock;
}

/** A project's engines for the inference host. Read from the store about once a second and after every change. */
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
    absence: engineAbsence(node, engine),
    models: engine?.models ?? [],
    since: node.statusSince,
    protocols,
    chat,
  };
}
