import type { IncomingHttpHeaders } from "node:http";

/** Distinguishes requests of local programs from those of websites that the user visits. */

const LOCAL_NAMES: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"]);

/** @returns why the request is rejected, or null if it is allowed. */
export function refusalOfRequest(method: string, headers: IncomingHttpHeaders): string | null {
  const host = headers.host ?? "";
  // DNS rebinding: an attacker's name can resolve to 127.0.0.1.
  if (!LOCAL_NAMES.has(host.replace(/:\d+$/, "").toLowerCase())) return `Use http://localhost instead of "${host}".`;
  const { origin } = headers;
  if (origin !== undefined && origin !== `http://${host}`) return `Pages from ${origin} cannot use this forwarder.`;
  const site = headers["sec-fetch-site"];
  const typedOrOwn = site === undefined || site === "none" || site === "same-origin";
  // Navigation shows the page to the user only, not to the linking site.
  const followed = method === "GET" && headers["sec-fetch-mode"] === "navigate";
  return typedOrOwn || followed ? null : "Pages from other origins cannot use this forwarder.";
}
