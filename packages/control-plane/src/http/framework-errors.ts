import { DomainError, type ErrorCode } from "@fairlead/protocol/errors";

/** Fastify's own errors, in our words. What is not listed here is a fault of ours, or told by its status alone. */
const FRAMEWORK_ERRORS: Readonly<Record<string, readonly [ErrorCode, string]>> = {
  FST_ERR_BAD_URL: ["invalid_request", "The path is not a valid URL path; check its % encodings"],
  FST_ERR_MAX_PARAM_LENGTH: ["not_found", "A part of the path is too long to name anything here"],
  FST_ERR_CTP_BODY_TOO_LARGE: ["request_too_large", "The body is larger than this host accepts"],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ["unsupported_media_type", "Send the body as `content-type: application/json`"],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ["invalid_request", "The body is not as long as `content-length` says"],
  FST_ERR_CTP_EMPTY_JSON_BODY: ["malformed_json", "The body is empty; send a JSON object"],
  FST_ERR_CTP_INVALID_JSON_BODY: ["malformed_json", "The body is not valid JSON"],
};

/** @returns null for anything that is not an error of the framework about the request. */
export function fromFrameworkError(error: unknown): DomainError | null {
  if (!(error instanceof Error) || error instanceof DomainError) return null;
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  const known = FRAMEWORK_ERRORS[code];
  if (known) return new DomainError(known[0], `${known[1]}.`, { cause: error });
  const status = "statusCode" in error && typeof error.statusCode === "number" ? error.statusCode : 500;
  if (status < 400 || status >= 500) return null;
  return new DomainError("invalid_request", "The request could not be read.", { cause: error, note: error.message });
}

/** What Node's HTTP parser gives up on, before there is a request: the code and the status line's words. */
export function fromClientError(error: Error & { readonly code?: string }): { error: DomainError; reason: string } {
  if (error.code === "HPE_HEADER_OVERFLOW") {
    const message = "The request's headers are larger than this host accepts.";
    return { error: new DomainError("headers_too_large", message), reason: "Request Header Fields Too Large" };
  }
  if (error.code === "ERR_HTTP_REQUEST_TIMEOUT") {
    return {
      error: new DomainError("request_timeout", "The request took too long to arrive."),
      reason: "Request Timeout",
    };
  }
  return { error: new DomainError("invalid_request", "This is not a valid HTTP request."), reason: "Bad Request" };
}
