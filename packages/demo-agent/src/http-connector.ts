import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Config } from "./config.ts";
import { causeOf } from "./models.ts";
import { TaskFailure } from "./task-failure.ts";

const TIMEOUT_MS = 10_000;

export interface DoneTask {
  readonly agentId: string;
  readonly task: string;
  readonly answer: string;
}

/** The `http` connector: somebody's endpoint, which is told of every task that was done. */
export class HttpConnector {
  readonly #config: Config;

  constructor(config: Config) {
    this.#config = config;
  }

  /** False: the agent has no such connector. @throws TaskFailure where its endpoint does not take it. */
  async deliver(done: DoneTask, signal: AbortSignal): Promise<boolean> {
    const [url, token] = await Promise.all([this.#secret("HTTP_CONNECTOR_URL"), this.#secret("HTTP_CONNECTOR_TOKEN")]);
    if (url === null || token === null) return false;
    const response = await fetch(url, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify(done),
      signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
    }).catch((error: unknown) => {
      throw new TaskFailure(502, "connector_failed", `The http connector's endpoint did not answer: ${causeOf(error)}`);
    });
    await response.body?.cancel();
    if (response.ok) return true;
    throw new TaskFailure(502, "connector_failed", `The http connector's endpoint answered ${response.status}.`);
  }

  /** Read each time, since a file follows a change at once. */
  async #secret(name: string): Promise<string | null> {
    const variable = this.#config.variable(name);
    if (variable !== null) return variable;
    try {
      return (await readFile(join(this.#config.secretsFolder, name), "utf8")).trim();
    } catch {
      return null;
    }
  }
}
