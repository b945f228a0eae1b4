import { proxyConnector } from "@fairlead/wire/proxy/proxy-connector";
import type { ProxyRules } from "@fairlead/wire/proxy/proxy-rules";
import { Agent, buildConnector, setGlobalDispatcher } from "undici";

const CONNECT_MS = 10_000;

/** Makes `fetch` use these proxies. */
export function proxyFetch(proxies: ProxyRules): void {
  const direct = buildConnector({ timeout: CONNECT_MS, allowH2: false });
  setGlobalDispatcher(new Agent({ connect: proxyConnector(direct, { proxies, connectMs: CONNECT_MS }) }));
}
