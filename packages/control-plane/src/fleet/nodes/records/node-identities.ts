import type { NodeIdentity } from "../../../access/auth/authenticate.ts";
import { keyThumbprint } from "../../../access/auth/tokens/node-assertion.ts";
import type { NodeStore } from "./node-store.ts";

/** Which key a node's tokens must be bound to. Null for a node that is unknown, not enrolled, or being deleted. */
export class StoredNodeIdentities {
  readonly #nodes: NodeStore;

  constructor(nodes: NodeStore) {
    this.#nodes = nodes;
  }

  async find(nodeId: string): Promise<NodeIdentity | null> {
    const node = await this.#nodes.find(nodeId);
    if (!node?.signingKey || node.status === "deleting") return null;
    const { projectId } = node;
    const projectDeleting = await this.#nodes.isProjectDeleting(projectId);
    return { projectId, signingKeyThumbprint: keyThumbprint(node.signingKey), projectDeleting };
  }
}
