import { UsageError } from "../cli-error.ts";

/** Whether a URL's host is this machine, which nobody on the way can listen to. */
export function isLoopback(url: URL): boolean {
  const { hostname } = url;
  return hostname === "[::1]" || /^(?:.*\.)?localhost$/.test(hostname) || /^127\.\d+\.\d+\.\d+$/.test(hostname);
}

/** @throws UsageError for plain http to another machine, unless that was asked for. */
export function requireSafeAddress(baseUrl: string, insecure: boolean): void {
  const url = new URL(baseUrl);
  if (url.protocol === "https:" || isLoopback(url) || insecure) return;
  throw new UsageError(
    `${baseUrl} is plain http: everybody on the way could read your tokens. Use https, or --insecure if you know the network.`,
  );
}
