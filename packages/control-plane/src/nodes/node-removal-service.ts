import type { NodeRecord } from "./node.ts";
import type { NodeChangeService } from "./node-change-service.ts";
import type { NodeDrainService } from "./node-drain-service.ts";
import type { NodeStores } from "./node-stores.ts";

export interface NodeRemovalDeps {
  readonly stores: NodeStores;
  readonly drain: NodeDrainService;
  readonly nodeChanges: Pick<NodeChangeService, "remove">;
}

const PAGE = 100;
const REASON = "Its project is being deleted.";

/** Ends the nodes of a project that is being deleted. */
export class NodeRemovalService {
  readonly #deps: NodeRemovalDeps;

  constructor(deps: NodeRemovalDeps) {
    this.#deps = deps;
  }

  /** Drains all of them, then revokes and forgets each. May be called again after it broke off. @throws AbortError by `stop` */
  async removeAll(projectId: string, stop: AbortSignal): Promise<void> {
    const { stores, drain, nodeChanges } = this.#deps;
    let nodes: readonly NodeRecord[];
    do {
      nodes = await stores.nodes.list(projectId, { limit: PAGE, after: null });
      await Promise.all(nodes.map(({ id }) => drain.drain(id, { reason: REASON, stop })));
      for (const node of nodes) {
        stop.throwIfAborted();
        const actor = { kind: "system", name: "server" } as const;
        await nodeChanges.remove(node, { actor, detail: { because: "project.delete" } });
      }
    } while (nodes.length > 0);
  }
}
