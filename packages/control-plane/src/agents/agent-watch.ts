import type { Logger } from "pino";
import type { NodeChanges } from "../nodes/node-changes.ts";
import type { AgentCourseService } from "./agent-course-service.ts";
import type { AgentStores } from "./agent-stores.ts";

export interface AgentWatchDeps {
  readonly stores: Pick<AgentStores, "agents">;
  readonly courses: Pick<AgentCourseService, "look">;
  readonly nodes: NodeChanges;
  readonly log: Logger;
}

/** After this long everything is looked at again, so that a change that nobody told of can never matter. */
const SWEEP_MS = 10_000;

/** Lets agents follow what becomes of their nodes, for as long as the server runs. @returns the call that ends it, after what it is at. */
export function startAgentWatch(deps: AgentWatchDeps): () => Promise<void> {
  const watch = new AgentWatch(deps);
  const unlisten = deps.nodes.listen(({ nodeId, aspect }) => {
    if (aspect !== "desired") watch.look(nodeId);
  });
  // At once too: reports may have come that nobody took up before the server stopped.
  watch.sweep();
  const timer = setInterval(() => watch.sweep(), SWEEP_MS);
  timer.unref();
  return async () => {
    clearInterval(timer);
    unlisten();
    await watch.close();
  };
}

/** One look at a node at a time: what is seen later counts. */
class AgentWatch {
  readonly #deps: AgentWatchDeps;
  /** Nodes that are looked at, and whether they are to be again. */
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
      this.#deps.log.error({ err: error }, "agents could not be looked for");
    }
  }

  async #run(nodeId: string): Promise<void> {
    const look = this.#looks.get(nodeId);
    do {
      if (look) look.again = false;
      try {
        for (const { id } of await this.#deps.stores.agents.around(nodeId)) await this.#deps.courses.look(id);
      } catch (error) {
        this.#deps.log.error({ nodeId, err: error }, "agents could not follow their node");
      }
    } while (look?.again === true && !this.#closed);
    this.#looks.delete(nodeId);
  }
}
