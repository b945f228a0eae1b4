import { type BackoffOptions, fullJitter } from "@fairlead/protocol/backoff";
import { type DesiredState, WORKLOAD_TYPE_ENGINE } from "@fairlead/protocol/workload";
import {
  CONNECT_TOKEN_TTL_SECONDS,
  type WorkloadConnect,
  workloadConnectSchema,
} from "@fairlead/protocol/workload-connect";
import { type HttpClient, jsonOf } from "../link/http-client.ts";
import type { IdentityTokens } from "../link/identity.ts";
import { PlatformError } from "../link/platform-answer.ts";
import { type Log, reasonOf } from "../log.ts";
import type { Timers } from "../timers.ts";

/** Files in the folder that a workload's containers see; the secrets' room. */
export interface WorkloadFiles {
  put(workloadId: string, name: string, bytes: Uint8Array): void;
}

export interface ConnectFilesDeps {
  readonly ask: () => Promise<WorkloadConnect>;
  readonly files: WorkloadFiles;
  readonly timers: Timers;
  /** In [0, 1). */
  readonly random: () => number;
  readonly log: Log;
}

const GATEWAY_URL_FILE = "fairlead-gateway-url";
const GATEWAY_TOKEN_FILE = "fairlead-gateway-token";

const CALL_TIMEOUT_MS = 15_000;
/** At about a third left, and not all nodes at once. */
const RENEW_MS = (CONNECT_TOKEN_TTL_SECONDS * 1000 * 2) / 3;
const BACKOFF: BackoffOptions = { baseMs: 2000, maxMs: 60_000 };

export interface ConnectCallDeps {
  readonly platformUrl: string;
  readonly nodeId: string;
  readonly http: HttpClient;
  readonly tokens: Pick<IdentityTokens, "token" | "invalidate">;
}

/** `GET /v1/nodes/{id}/workload-connect` with the node identity token (interface §4.4). @throws PlatformError for every other answer than 200. */
export function connectCall({ platformUrl, nodeId, http, tokens }: ConnectCallDeps): () => Promise<WorkloadConnect> {
  const url = new URL(`/v1/nodes/${encodeURIComponent(nodeId)}/workload-connect`, platformUrl).href;
  return async () => {
    const bearer = await tokens.token();
    const answer = await http({ method: "GET", url, bearer, timeoutMs: CALL_TIMEOUT_MS });
    if (answer.status === 401) tokens.invalidate(bearer);
    if (answer.status !== 200) throw new PlatformError(answer);
    return workloadConnectSchema.parse(jsonOf(answer));
  };
}

/** Gives the node's engine its own address and a token for it as files, renewed in place (design §6). An engine starts without them too. */
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
      // Another engine meanwhile has its own turn.
      if (engineId === null || this.#engineId !== engineId) return;
      files.put(engineId, GATEWAY_URL_FILE, Buffer.from(gatewayUrl));
      files.put(engineId, GATEWAY_TOKEN_FILE, Buffer.from(authToken));
      this.#failures = 0;
      nextMs = RENEW_MS * (1 - random() / 10);
    } catch (error) {
      if (this.#engineId !== engineId) return;
      log.warn({ reason: reasonOf(error) }, "could not get the way to the engine from outside; trying again");
      nextMs = fullJitter(BACKOFF, this.#failures++, random());
    }
    this.#after(nextMs);
  }
}
