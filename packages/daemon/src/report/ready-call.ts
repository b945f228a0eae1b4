import type { ReadyRequest } from "@fairlead/protocol/workload";
import type { HttpClient } from "../link/http-client.ts";
import type { IdentityTokens } from "../link/identity.ts";
import { PlatformError } from "../link/platform-answer.ts";

const CALL_TIMEOUT_MS = 15_000;

export interface ReadyCallDeps {
  readonly platformUrl: string;
  readonly http: HttpClient;
  readonly tokens: Pick<IdentityTokens, "token" | "invalidate">;
}

/** `POST /v1/nodes/{id}/ready` with the node identity token (interface §4.4). @throws PlatformError for every other answer than 200. */
export function readyCall({ platformUrl, http, tokens }: ReadyCallDeps): (request: ReadyRequest) => Promise<void> {
  return async (body) => {
    const bearer = await tokens.token();
    const url = new URL(`/v1/nodes/${encodeURIComponent(body.id)}/ready`, platformUrl).href;
    const answer = await http({ method: "POST", url, bearer, body, timeoutMs: CALL_TIMEOUT_MS });
    if (answer.status === 401) tokens.invalidate(bearer);
    if (answer.status !== 200) throw new PlatformError(answer);
  };
}
