import { type BackoffOptions, fullJitter } from "@fairlead/protocol/values/backoff";
import { urlBelow } from "@fairlead/protocol/values/url";
import { type DesiredState, WORKLOAD_TYPE_ENGINE } from "@fairlead/protocol/workload";
import {
  CONNECT_TOKEN_TTL_SECONDS,
  type WorkloadConnect,
  workloadConnectSchema,
} from "@fairlead/protocol/workload-connect";
import { type HttpClient, jsonOf } from "../link/http-client.ts";
import type { IdentityTokens } from "../link/identity.ts";
import { PlatformError } from "../link/platform-answer.ts";
import { type DaemonLog, reasonOf } from "../process/log.ts";
import type { Timers } from "../process/timers.ts";

/** Writes files into the secrets folder of a workload's containers. */
export interface WorkloadFiles {
  put(workloadId: string, name: string, bytes: Uint8Array): void;
}

export interface ConnectFilesDeps {
  readonly ask: () => Promise<WorkloadConnect>;
  readonly files: WorkloadFiles;
  readonly timers: Timers;
  /** In [0, 1). */
  readonly random: () => number;
  readonly log: DaemonLog;
}

const GATEWAY_URL_FILE = "fairlead-gateway-url";
const GATEWAY_TOKEN_FILE = "fairlead-gateway-token";

const CALL_TIMEOUT_MS = 15_000;
/** At about a third of the lifetime left, with jitter across nodes. */
const RENEW_MS = (CONNECT_TOKEN_TTL_SECONDS * 1000 * 2) / 3;
const BACKOFF: BackoffOptions = { baseMs: 2000, maxMs: 60_000 };

export interface ConnectCallDeps {
  readonly platformUrl: string;
  readonly nodeId: string;
  readonly http: HttpClient;
  readonly tokens: Pick<IdentityTokens, "token" | "invalidate">;
}

/** `GET /v1/nodes/{id}/workload-connect` with the node identity token. @throws PlatformError for any response but 200. */
export function connectCall({ platformUrl, nodeId, http, tokens }: ConnectCallDeps): () => Promise<WorkloadConnect> {
  const url = urlBelow(platformUrl, `/v1/nodes/${encodeURIComponent(nodeId)}/workload-connect`);
  return async () => {
    const bearer = await tokens.token();
    const answer = await http({ method: "GET", url, bearer, timeoutMs: CALL_TIMEOUT_MS });
    if (answer.status === 401) tokens.invalidate(bearer);
    if (answer.status !== 200) throw new PlatformError(answer);
    return workloadConnectSchema.parse(jsonOf(answer));
  };
}

/** Writes the engine's external URL and a token for it to files and renews them in place. Engines also start without them. */
export class ConnectFiles {
  readonly #deps: ConnectFilesDeps;
  #engineId: string | null = null;
  #failures = 0;
  #cancel: () => void = () => undefined;

  constructor(deps: ConnectFilesDeps) {
    this.#deps = deps;
  }

  desiredChanged({ workloads }: DesiredState): void {
    const engine = workloads.find(({ workloadType }) => workloadType === WORKLOAD_TYPE_ENGINE);
    const engineId = engine?.workloadId ?? null;
    if (engineId === this.#engineId) return;
    this.#engineId = engineId;
    this.#failures = 0;
    this.#after(0);
  }

  close(): void {
    this.#engineId = null;
    this.#cancel();
  }

  #after(milliseconds: number): void {
    this.#cancel();
    if (this.#engineId === null) return;
    this.#cancel = this.#deps.timers.after(milliseconds, () => void this.#renew(this.#engineId));
  }

  async #renew(engineId: string | null): Promise<void> {
    const { ask, files, random, log } = this.#deps;
    let nextMs: number;
    try {
      const { gatewayUrl, authToken } = await ask();
      // A newer engine is handled by its own call.
      if (engineId === null || this.#engineId !== engineId) return;
      files.put(engineId, GATEWAY_URL_FILE, Buffer.from(gatewayUrl));
      files.put(engineId, GATEWAY_TOKEN_FILE, Buffer.from(authToken));
      this.#failures = 0;
      nextMs = RENEW_MS * (1 - random() / 10);
    } catch (error) {
      if (this.#engineId !== engineId) return;
      log.warn({ reason: reasonOf(error) }, "could not get the engine's external URL and token; retrying");
      nextMs = fullJitter(BACKOFF, this.#failures++, random());
    }
    this.#after(nextMs);
  }
}
