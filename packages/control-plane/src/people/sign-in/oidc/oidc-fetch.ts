import { isIP } from "node:net";
import { boundedBody, ResponseTooLarge } from "@fairlead/hosting/bounded-response";
import { jsonDepthWithin } from "@fairlead/protocol/values/json-depth";
import type { OutgoingFetch } from "../../../installation/outgoing/outgoing-fetch.ts";
import type { BoundCounters } from "../../../telemetry/bounds/bound-counters.ts";

/** Larger than any discovery document or key set. */
const MAX_BYTES = 262_144;
const MAX_DEPTH = 64;
/** Statuses without a body, for which `Response` accepts none. */
const NO_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

export class OidcResponseError extends Error {
  override readonly name = "OidcResponseError";
}

/**
 * Fetch for OIDC: bounded responses, and no discovered endpoints in private networks, except on the issuer's own address. Redirects are not
 * followed; the caller's signal limits the time.
 */
export function boundedFetch(
  issuer: URL,
  { bounds, fetch }: { readonly bounds: Pick<BoundCounters, "reached">; readonly fetch: OutgoingFetch },
): (url: string, options: object) => Promise<Response> {
  return async (url, options) => {
    const target = new URL(url);
    if (target.hostname !== issuer.hostname && isInside(target.hostname)) {
      throw new OidcResponseError(`${target.hostname} is a private address and not the issuer's`);
    }
    const response = await fetch(target, { ...options, redirect: "manual" });
    const bytes = await readBounded(response);
    if (bytes === null || !jsonDepthWithin(bytes, MAX_DEPTH)) {
      bounds.reached("oidc_response");
      const limit = `${MAX_BYTES} bytes and ${MAX_DEPTH} levels`;
      throw new OidcResponseError(`a response of ${target.origin} exceeds ${limit}`);
    }
    const { status, statusText, headers } = response;
    return new Response(NO_BODY.has(status) ? null : bytes, { status, statusText, headers });
  };
}

/** An IP address or a local name. Other names are verified by TLS certificates. */
function isInside(hostname: string): boolean {
  return isIP(hostname.replace(/^\[|\]$/g, "")) !== 0 || hostname === "localhost" || hostname.endsWith(".localhost");
}

/** @returns null for a longer body, which is not read further. */
async function readBounded(response: Response): Promise<Uint8Array<ArrayBuffer> | null> {
  try {
    return await boundedBody(response, MAX_BYTES);
  } catch (error) {
    if (error instanceof ResponseTooLarge) return null;
    throw error;
  }
}
