import type { Server } from "node:http";

/**
 * Counts a server's calls from their head to the end of their answer. A stopping server waits for these and not for connections:
 * browsers and port checks hold sockets open on which nothing was ever asked.
 */
export class CallsInFlight {
  #count = 0;
  readonly #waiting = new Set<() => void>();

  constructor(server: Server) {
    server.on("request", (_request, response) => {
      this.#count += 1;
      response.once("close", () => {
        this.#count -= 1;
        if (this.#count > 0) return;
        for (const resolve of this.#waiting) resolve();
        this.#waiting.clear();
      });
    });
  }

  /** Resolves once none is left. */
  async whenIdle(): Promise<void> {
    if (this.#count === 0) return;
    await new Promise<void>((resolve) => this.#waiting.add(resolve));
  }
}
