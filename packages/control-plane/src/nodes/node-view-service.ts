import type { Node } from "@fairlead/protocol/resources";
import type { NodeRecord } from "./node.ts";
import type { NodeStores } from "./node-stores.ts";
import { toNode } from "./node-view.ts";

/** Nodes as the interface shows them, with what runs on them. */
export class NodeViewService {
  readonly #stores: Pick<NodeStores, "reports">;

  constructor(stores: Pick<NodeStores, "reports">) {
    this.#stores = stores;
  }

  async one(node: NodeRecord): Promise<Node> {
    const { reports } = this.#stores;
    const [desired, report] = await Promise.all([reports.desired(node.id), reports.report(node.id)]);
    return toNode(node, { desired, report });
  }

  /** @param nodes of one project. */
  async all(projectId: string, nodes: readonly NodeRecord[]): Promise<Node[]> {
    const { reports } = this.#stores;
    const [desired, reported] = await Promise.all([reports.desiredOf(projectId), reports.reportsOf(projectId)]);
    return nodes.map((node) =>
      toNode(node, { desired: desired.get(node.id) ?? null, report: reported.get(node.id) ?? null }),
    );
  }
}
