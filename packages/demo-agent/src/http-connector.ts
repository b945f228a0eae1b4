import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { DemoAgentConfig } from "./config.ts";
import { causeOf } from "./models.ts";
import { TaskFailure } from "./task-failure.ts";

const TIMEOUT_MS = 10_000;

export interface DoneTask {
  readonly agentId: string;
  readonly task: string;
  readonly answer: string;
}

/** The `http` connector: sends each finished task to an endpoint. */
export class HttpConnector {
  readonly #config: DemoAgentConfig;

  constructor(config: DemoAgentConfig) {
    this.#config = config;
  }

  /** @returns false if the agent has no such connector. @throws TaskFailure if the endpoint does not accept it. */
  async deliver(done: DoneTask, signal: AbortSignal): Promise<boolean> {
    const [url, token] = await Promise.all([this.#secret("HTTP_CONNECTOR_URL"), this.#secret("HTTP_CONNECTOR_TOKEN")]);
    if (url === null || token === null) return false;
    const response = await fetch(url, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify(done),
      signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
    }).catch((error: unknown) => {
      throw new TaskFailure(
        502,
        "connector_failed",
        `The http connector's endpoint did not respond: ${causeOf(error)}`,
      );
    });
    await response.body?.cancel();
    if (response.ok) return true;
    throw new TaskFailure(502, "connector_failed", `The http connector's endpoint returned ${response.status}.`);
  }

  /** Read on every call, because the file can change. */
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
