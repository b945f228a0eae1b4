import { z } from "zod";

/** Header rules of a provider: what is sent with every call, and what of a caller's may go on. Pure. */

/** They frame the message, name who speaks, or are set by the transport. */
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
 * What holds a credential, by its name: the one of the provider has a field of its own, and a caller's must not leave. Nor what a proxy
 * in front of this server says of whom it let in (`x-goog-iap-jwt-assertion`, `x-amzn-oidc-data`, `x-ssl-client-cert`).
 */
const CREDENTIAL = /assertion|auth|(^|-)cert|cookie|credential|jwt|oidc|passw|secret|session|token|(^|-)key$|api-?key/;

export const headerNameSchema = z
  .string()
  .toLowerCase()
  .regex(/^[a-z0-9!#$%&'*+.^_`|~-]{1,64}$/, "must be a header's name")
  .refine((name) => !isOurs(name), "is set by the server itself");

const harmlessName = headerNameSchema.refine(
  (name) => !CREDENTIAL.test(name),
  "seems to carry a credential; that belongs into `credential`, with `credentialHeader` for its header",
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
