import { urlBelow } from "@fairlead/protocol/values/url";
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

/** `POST /v1/nodes/{id}/ready` with the node identity token. @throws PlatformError for any response but 200. */
export function readyCall({ platformUrl, http, tokens }: ReadyCallDeps): (request: ReadyRequest) => Promise<void> {
  return async (body) => {
    const bearer = await tokens.token();
    const url = urlBelow(platformUrl, `/v1/nodes/${encodeURIComponent(body.id)}/ready`);
    const answer = await http({ method: "POST", url, bearer, body, timeoutMs: CALL_TIMEOUT_MS });
    if (answer.status === 401) tokens.invalidate(bearer);
    if (answer.status !== 200) throw new PlatformError(answer);
  };
}
