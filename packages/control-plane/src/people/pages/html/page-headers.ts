/**
 * Headers of pages, in addition to those of every response (`nosniff`, `no-store`). Written by hand: a library's
 * defaults would have to be disabled one by one on a host that mostly serves an API. Pure.
 */
export function pageHeaders(publicUrl: string): Readonly<Record<string, string>> {
  return {
    // No scripts, no third-party content, no framing. Allowed form targets: decisions/0011.
    "content-security-policy":
      "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "same-origin",
    ...(publicUrl.startsWith("https:") ? { "strict-transport-security": "max-age=31536000" } : {}),
  };
}

/** For pages whose URL is a secret: it is never sent as a referrer, not even to this host. */
export const SECRET_ADDRESS_HEADERS: Readonly<Record<string, string>> = { "referrer-policy": "no-referrer" };
