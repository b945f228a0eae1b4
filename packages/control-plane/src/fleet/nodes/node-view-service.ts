import type { Node } from "@fairlead/protocol/resources";
import { desiredVersionOf } from "./desired/daemon-version.ts";
import type { NodeRecord } from "./node.ts";
import { toNode } from "./node-view.ts";
import type { NodeStores } from "./records/node-stores.ts";

/** Nodes as the interface shows them, with what runs on them and which daemon they are to have. */
export class NodeViewService {
  readonly #stores: Pick<NodeStores, "reports" | "daemonVersions">;

  constructor(stores: Pick<NodeStores, "reports" | "daemonVersions">) {
    this.#stores = stores;
  }

  async one(node: NodeRecord): Promise<Node> {
    const { reports, daemonVersions } = this.#stores;
    const [desired, report, daemons] = await Promise.all([
      reports.desired(node.id),
      reports.report(node.id),
      daemonVersions.of({ scope: "node", nodeId: node.id, projectId: node.projectId }),
    ]);
    return toNode(node, { desired, report, desiredDaemonVersion: desiredVersionOf(node, daemons) });
  }

  /** @param nodes of one project. */
  async all(projectId: string, nodes: readonly NodeRecord[]): Promise<Node[]> {
    const { reports, daemonVersions } = this.#stores;
    const [desired, reported, daemons] = await Promise.all([
      reports.desiredOf(projectId),
      reports.reportsOf(projectId),
      daemonVersions.ofNodes(projectId),
    ]);
    return nodes.map((node) =>
      toNode(node, {
        desired: desired.get(node.id) ?? null,
        report: reported.get(node.id) ?? null,
        desiredDaemonVersion: desiredVersionOf(node, daemons),
      }),
    );
  }
}
