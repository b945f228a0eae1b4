/**
 * Headers of pages, on top of those of every answer (`nosniff`, `no-store`). Written by hand: they are seven lines, while a
 * library's defaults would have to be switched off one by one for a host that mostly serves an API. Pure.
 */
export function pageHeaders(publicUrl: string): Readonly<Record<string, string>> {
  return {
    // No script at all, nothing from elsewhere, no frame around it. Where forms may lead: docs/decisions/0011.
    "content-security-policy":
      "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "same-origin",
    ...(publicUrl.startsWith("https:") ? { "strict-transport-security": "max-age=31536000" } : {}),
  };
}

/** For pages whose own address is a secret: it goes nowhere, not even to us. */
export const SECRET_ADDRESS_HEADERS: Readonly<Record<string, string>> = { "referrer-policy": "no-referrer" };
