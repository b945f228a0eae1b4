import { MalformedAnswer } from "@fairlead/wire/http1/response-head";
import { PrivateAddressError } from "./guarded-connect.ts";

/** By error code, because error texts contain addresses. */
const REASONS: readonly (readonly [code: RegExp, reason: string])[] = [
  [/^ECONNREFUSED$/, "connection refused"],
  [/^(?:ENOTFOUND|EAI_\w+|ENODATA)$/, "host name not found"],
  [/^(?:UND_ERR_CONNECT_TIMEOUT|ETIMEDOUT)$/, "connection timed out"],
  [/^(?:ECONNRESET|EPIPE)$/, "connection reset"],
  [/^(?:EHOSTUNREACH|ENETUNREACH|ENETDOWN|EADDRNOTAVAIL)$/, "no route to the host"],
  [/^CERT_HAS_EXPIRED$/, "its TLS certificate has expired"],
  [/^ERR_TLS_CERT_ALTNAME_INVALID$/, "its TLS certificate is for another host name"],
  [/CERT|SELF_SIGNED|UNABLE_TO_(?:VERIFY|GET_ISSUER)/, "its TLS certificate is not trusted"],
  [/^(?:EPROTO|ERR_SSL_\w+|ERR_TLS_\w+)$/, "TLS handshake failed"],
];

/** Describes a failed connection. @param otherwise if the reason is unknown. */
export function connectionFailure(cause: Error, otherwise: string): string {
  if (cause instanceof PrivateAddressError) return "its address is not public, so no connection is made";
  if (cause instanceof MalformedAnswer) return "returned a response that is not valid HTTP/1.1";
  const code = "code" in cause ? String(cause.code) : "";
  return REASONS.find(([pattern]) => pattern.test(code))?.[1] ?? otherwise;
}
