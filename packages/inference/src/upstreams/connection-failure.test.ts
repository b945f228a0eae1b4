import { MalformedAnswer } from "@fairlead/wire/http1/response-head";
import { expect, test } from "vitest";
import { connectionFailure } from "./connection-failure.ts";
import { PrivateAddressError } from "./guarded-connect.ts";

const failed = (code: string): Error => Object.assign(new Error("connect ECONNREFUSED 10.0.0.5:443"), { code });

test.each([
  [failed("ECONNREFUSED"), "connection refused"],
  [failed("ENOTFOUND"), "host name not found"],
  [failed("EAI_AGAIN"), "host name not found"],
  [failed("UND_ERR_CONNECT_TIMEOUT"), "connection timed out"],
  [failed("ETIMEDOUT"), "connection timed out"],
  [failed("ECONNRESET"), "connection reset"],
  [failed("ENETUNREACH"), "no route to the host"],
  [failed("DEPTH_ZERO_SELF_SIGNED_CERT"), "its TLS certificate is not trusted"],
  [failed("UNABLE_TO_VERIFY_LEAF_SIGNATURE"), "its TLS certificate is not trusted"],
  [failed("CERT_HAS_EXPIRED"), "its TLS certificate has expired"],
  [failed("ERR_TLS_CERT_ALTNAME_INVALID"), "its TLS certificate is for another host name"],
  [failed("EPROTO"), "TLS handshake failed"],
  [failed("ERR_SSL_WRONG_VERSION_NUMBER"), "TLS handshake failed"],
  [new PrivateAddressError("10.0.0.5"), "its address is not public, so no connection is made"],
  [new MalformedAnswer("10.0.0.5"), "returned a response that is not valid HTTP/1.1"],
  [failed("EWHAT"), "could not be reached"],
  [new Error("10.0.0.5"), "could not be reached"],
])("%o is reported as %s, without its address", (cause, reason) => {
  expect(connectionFailure(cause, "could not be reached")).toBe(reason);
});
