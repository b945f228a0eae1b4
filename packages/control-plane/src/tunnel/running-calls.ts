import { LOGS_WORKLOAD } from "@fairlead/protocol/daemon-link";
import type { TunnelHead } from "./tunnel-transport.ts";

/** How many calls on workloads run in one tunnel. */
export class RunningCalls {
  #count = 0;
  #whenIdle: (() => void)[] = [];

  /** @returns a function to be called once, when the call is over. */
  begin({ workload }: TunnelHead): () => void {
    // The daemon's own services are no work of a workload.
    if (workload === LOGS_WORKLOAD) return () => undefined;
    this.#count += 1;
    return () => {
      this.#count -= 1;
      if (this.#count === 0) this.tellIdle();
    };
  }

  /** Resolves when none runs. */
  idle(): Promise<void> {
    if (this.#count === 0) return Promise.resolve();
    return new Promise((resolve) => this.#whenIdle.push(resolve));
  }

  /** The tunnel is gone, and all calls with it. */
  tellIdle(): void {
    for (const tell of this.#whenIdle.splice(0)) tell();
  }
}
