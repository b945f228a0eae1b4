import { proxyConnector } from "@fairlead/wire/proxy/proxy-connector";
import type { ProxyRules } from "@fairlead/wire/proxy/proxy-rules";
import { Agent, buildConnector, fetch as proxiedFetch, type RequestInit } from "undici";

type OutgoingInit = Omit<globalThis.RequestInit, "dispatcher">;

/** The part of `fetch` that calls to clouds and OIDC issuers need. */
export type OutgoingFetch = (url: string | URL, init: OutgoingInit) => Promise<Response>;

const CONNECT_MS = 10_000;

export const directFetch: OutgoingFetch = (url, init) => fetch(url, init);

/** Uses the configured proxies; without any, the built-in fetch. */
export function outgoingFetch(proxies: ProxyRules): OutgoingFetch {
  if (proxies.https === null && proxies.http === null) return directFetch;
  const direct = buildConnector({ timeout: CONNECT_MS, allowH2: false });
  const dispatcher = new Agent({ connect: proxyConnector(direct, { proxies, connectMs: CONNECT_MS }) });
  // The types differ only in parts that are not used here.
  return async (url, init) =>
    (await proxiedFetch(url, { ...(init as RequestInit), dispatcher })) as unknown as Response;
}
