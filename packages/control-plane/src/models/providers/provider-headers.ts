import { z } from "zod";

/** Header rules of a provider: which headers are added or passed through. Pure. */

/** Headers for framing, identity or the transport. */
const OURS: ReadonlySet<string> = new Set([
  "accept-encoding",
  "connection",
  "content-encoding",
  "content-length",
  "content-type",
  "date",
  "expect",
  "forwarded",
  "host",
  "keep-alive",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "via",
  "x-real-ip",
]);

/**
 * Names of headers with credentials: the provider's has its own field, and the caller's must not be forwarded. Also identity headers of
 * proxies in front of this server (`x-goog-iap-jwt-assertion`, `x-amzn-oidc-data`, `x-ssl-client-cert`).
 */
const CREDENTIAL = /assertion|auth|(^|-)cert|cookie|credential|jwt|oidc|passw|secret|session|token|(^|-)key$|api-?key/;

export const headerNameSchema = z
  .string()
  .toLowerCase()
  .regex(/^[a-z0-9!#$%&'*+.^_`|~-]{1,64}$/, "must be a valid header name")
  .refine((name) => !isOurs(name), "is set by the server itself");

const harmlessName = headerNameSchema.refine(
  (name) => !CREDENTIAL.test(name),
  "seems to contain a credential; use `credential`, and `credentialHeader` for its header",
);

const MAX_HEADERS = 20;

export const headersSchema = z
  .record(harmlessName, z.string().regex(/^[\x21-\x7e]([\x20-\x7e]{0,1022}[\x21-\x7e])?$/, "must be printable ASCII"))
  .refine((headers) => Object.keys(headers).length <= MAX_HEADERS, `must be at most ${MAX_HEADERS}`);

export const forwardHeadersSchema = z.array(harmlessName).max(MAX_HEADERS);

function isOurs(name: string): boolean {
  return (
    OURS.has(name) || name.startsWith("proxy-") || name.startsWith("x-forwarded-") || name.startsWith("x-fairlead-")
  );
}
