import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { z } from "zod";
import type { DockerHost } from "../../support/docker-host.ts";

const eventSchema = z.object({
  Type: z.string(),
  Action: z.string(),
  Actor: z.object({ ID: z.string(), Attributes: z.record(z.string(), z.string()) }),
});
export type DockerEvent = z.infer<typeof eventSchema>;

/** What a Docker engine says that it does, in the moment when it does it. */
export class DockerEvents {
  readonly #child: ChildProcess;
  readonly #seen: DockerEvent[] = [];
  readonly #waiting = new Set<() => void>();

  constructor(host: DockerHost) {
    // From the second before, so that nothing falls between the start of the client and its subscription.
    const since = String(Math.floor(Date.now() / 1000));
    const args = ["-H", `unix://${host.socket}`, "events", "--since", since, "--format", "{{json .}}"];
    const child = spawn("docker", args, { stdio: ["ignore", "pipe", "ignore"] });
    this.#child = child;
    createInterface({ input: child.stdout }).on("line", (line) => {
      this.#seen.push(eventSchema.parse(JSON.parse(line)));
      for (const look of this.#waiting) look();
    });
  }

  /** What came so far, oldest first. */
  get seen(): readonly DockerEvent[] {
    return this.#seen;
  }

  /** Resolves as soon as such an event comes, or came. @throws after `timeoutMs`. */
  until(what: string, timeoutMs: number, matches: (event: DockerEvent) => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        if (!this.#seen.some(matches)) return;
        this.#waiting.delete(look);
        clearTimeout(limit);
        resolve();
      };
      const limit = setTimeout(() => {
        this.#waiting.delete(look);
        reject(new Error(`gave up waiting for ${what} after ${timeoutMs} ms`));
      }, timeoutMs);
      this.#waiting.add(look);
      look();
    });
  }

  close(): void {
    this.#child.kill();
  }
}
