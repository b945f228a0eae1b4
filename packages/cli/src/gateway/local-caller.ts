import type { IncomingHttpHeaders } from "node:http";

/** Whether a request to the local forwarder was made by a program of this machine, or by a page that its user just visits. */

const LOCAL_NAMES: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"]);

/** @returns why not, for the caller; null where it may. */
export function refusalOf(method: string, headers: IncomingHttpHeaders): string | null {
  const host = headers.host ?? "";
  // A name that an attacker's DNS points at 127.0.0.1 is no local one.
  if (!LOCAL_NAMES.has(host.replace(/:\d+$/, "").toLowerCase()))
    return `Use http://localhost here, not the name "${host}".`;
  const { origin } = headers;
  if (origin !== undefined && origin !== `http://${host}`) return `Pages of ${origin} may not use this forwarder.`;
  const site = headers["sec-fetch-site"];
  const typedOrOwn = site === undefined || site === "none" || site === "same-origin";
  // Following a link shows a page to the person, and nothing of it to where the link stood.
  const followed = method === "GET" && headers["sec-fetch-mode"] === "navigate";
  return typedOrOwn || followed ? null : "Pages of other origins may not use this forwarder.";
}
