import { keyThumbprint } from "../auth/node-assertion.ts";
import type { NodeStore } from "./node-store.ts";

/** Which key a node's tokens must be bound to. Null for a node that is unknown, not enrolled, or being deleted. */
export class NodeIdentities {
  readonly #nodes: NodeStore;

  constructor(nodes: NodeStore) {
    this.#nodes = nodes;
  }

  async find(nodeId: string): Promise<{ readonly projectId: string; readonly signingKeyThumbprint: string } | null> {
    const node = await this.#nodes.find(nodeId);
    if (!node?.signingKey || node.status === "deleting") return null;
    return { projectId: node.projectId, signingKeyThumbprint: keyThumbprint(node.signingKey) };
  }
}
