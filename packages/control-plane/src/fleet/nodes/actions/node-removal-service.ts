import { setTimeout as delay } from "node:timers/promises";
import type { NodeUpdateService } from "../desired/node-update-service.ts";
import type { NodeRecord } from "../node.ts";
import type { NodeStores } from "../records/node-stores.ts";
import type { NodeDrainService } from "./node-drain-service.ts";

export interface NodeRemovalDeps {
  readonly stores: NodeStores;
  readonly drain: NodeDrainService;
  readonly nodeChanges: Pick<NodeUpdateService, "remove">;
}

const PAGE = 100;
/** Between two looks at nodes that wait for their machines' end. */
const LOOK_MS = 500;
const REASON = "Its project is being deleted.";

/** Ends the nodes of a project that is being deleted. */
export class NodeRemovalService {
  readonly #deps: NodeRemovalDeps;

  constructor(deps: NodeRemovalDeps) {
    this.#deps = deps;
  }

  /** Drains all of them, then revokes and forgets each, and waits until rented machines are gone. May be called again after it broke off. @throws AbortError by `stop` */
  async removeAll(projectId: string, stop: AbortSignal): Promise<void> {
    const { stores, drain, nodeChanges } = this.#deps;
    let nodes: readonly NodeRecord[];
    do {
      nodes = await stores.nodes.list(projectId, { limit: PAGE, after: null });
      const asked = nodes.filter(({ status }) => status !== "deleting");
      if (nodes.length > 0 && asked.length === 0) await delay(LOOK_MS, undefined, { signal: stop });
      await Promise.all(asked.map(({ id }) => drain.drain(id, { reason: REASON, stop })));
      for (const node of asked) {
        stop.throwIfAborted();
        const actor = { kind: "system", name: "server" } as const;
        await nodeChanges.remove(node, { actor, detail: { because: "project.delete" } });
      }
    } while (nodes.length > 0);
  }
}
