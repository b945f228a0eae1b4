import type { Logger } from "pino";
import type { NodeChangeFeed } from "../../nodes/node-change-feed.ts";
import type { AgentStores } from "../records/agent-stores.ts";
import type { AgentTransitionService } from "./agent-transition-service.ts";

export interface AgentWatchDeps {
  readonly stores: Pick<AgentStores, "agents">;
  readonly courses: Pick<AgentTransitionService, "look">;
  readonly nodes: NodeChangeFeed;
  readonly log: Logger;
}

/** Full scan interval, in case a change was not announced. */
const SWEEP_MS = 10_000;

/** Keeps agents in step with their nodes. @returns a function that stops it, after the current step. */
export function startAgentWatch(deps: AgentWatchDeps): () => Promise<void> {
  const watch = new AgentWatch(deps);
  const unlisten = deps.nodes.listen(({ nodeId, aspect }) => {
    if (aspect !== "desired") watch.look(nodeId);
  });
  // Also on start: reports may have arrived before the last shutdown without being processed.
  watch.sweep();
  const timer = setInterval(() => watch.sweep(), SWEEP_MS);
  timer.unref();
  return async () => {
    clearInterval(timer);
    unlisten();
    await watch.close();
  };
}

/** One scan per node at a time. */
class AgentWatch {
  readonly #deps: AgentWatchDeps;
  /** Nodes being scanned, and whether they need another scan. */
  readonly #looks = new Map<string, { again: boolean; readonly done: Promise<void> }>();
  #sweeping: Promise<void> | null = null;
  #closed = false;

  constructor(deps: AgentWatchDeps) {
    this.#deps = deps;
  }

  look(nodeId: string): void {
    if (this.#closed) return;
    const running = this.#looks.get(nodeId);
    if (running !== undefined) {
      running.again = true;
      return;
    }
    const look = { again: false, done: Promise.resolve().then(() => this.#run(nodeId)) };
    this.#looks.set(nodeId, look);
  }

  sweep(): void {
    this.#sweeping ??= this.#sweep().finally(() => {
      this.#sweeping = null;
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#sweeping;
    await Promise.all([...this.#looks.values()].map(({ done }) => done));
  }

  async #sweep(): Promise<void> {
    try {
      for (const nodeId of await this.#deps.stores.agents.hosts()) this.look(nodeId);
    } catch (error) {
      this.#deps.log.error({ err: error }, "looking for agents failed");
    }
  }

  async #run(nodeId: string): Promise<void> {
    const look = this.#looks.get(nodeId);
    do {
      if (look) look.again = false;
      try {
        for (const { id } of await this.#deps.stores.agents.around(nodeId)) await this.#deps.courses.look(id);
      } catch (error) {
        this.#deps.log.error({ nodeId, err: error }, "updating agents from their node failed");
      }
    } while (look?.again === true && !this.#closed);
    this.#looks.delete(nodeId);
  }
}
