import { UsageError } from "../cli-error.ts";

/** Whether the URL's host is this machine, so that traffic does not leave it. */
export function isLoopback(url: URL): boolean {
  const { hostname } = url;
  return hostname === "[::1]" || /^(?:.*\.)?localhost$/.test(hostname) || /^127\.\d+\.\d+\.\d+$/.test(hostname);
}

/** @throws UsageError for plain HTTP to another machine, unless `insecure`. */
export function requireSafeAddress(baseUrl: string, insecure: boolean): void {
  const url = new URL(baseUrl);
  if (url.protocol === "https:" || isLoopback(url) || insecure) return;
  throw new UsageError(
    `${baseUrl} is plain HTTP: others on the network could read your tokens. Use HTTPS, or --insecure if you trust the network.`,
  );
}
