import type { BoundRows } from "./bound-row.ts";

const CALLS = "calls of the inference host and chat turns";
const ADMISSION_TEST = "packages/hosting/src/requests/admission.test.ts";
const OVERLOADED = "503 `overloaded` immediately, with `retry-after`";

/** Request and response bodies: size, speed, depth. */
export const BODY_BOUNDS = {
  calls_in_flight: {
    party: "caller",
    entry: CALLS,
    limit: "10,000 in flight (`inference.maxCallsInFlight`)",
    effect: OVERLOADED,
    test: `${ADMISSION_TEST}: counts rejections for lack of capacity`,
  },
  calls_in_flight_of_owner: {
    party: "caller",
    entry: CALLS,
    limit:
      "three quarters of the calls in flight for all projects of one owner, less while others need some (`inference.ownerShare`)",
    effect: OVERLOADED,
    test: `${ADMISSION_TEST}: reserves capacity for owners with few calls`,
  },
  buffered_bytes: {
    party: "caller",
    entry: `bodies of ${CALLS}, and responses that must be complete, as they arrive`,
    limit: "256 MiB (`inference.maxBufferedBytes`)",
    effect: OVERLOADED,
    test: `${ADMISSION_TEST}: counts rejections for lack of capacity`,
  },
  buffered_bytes_of_owner: {
    party: "caller",
    entry: `bodies of ${CALLS}, and responses that must be complete, as they arrive`,
    limit:
      "three quarters of the bytes for all projects of one owner, less while others need some (`inference.ownerShare`)",
    effect: OVERLOADED,
    test: `${ADMISSION_TEST}: reserves memory for the bodies and responses of such owners`,
  },
  upload_pace: {
    party: "caller",
    entry: "request bodies of both hosts",
    limit: "16 KiB/s over any 10 s in which the server reads (`inference.minUploadBytesPerSecond`)",
    effect: "408 `request_timeout`, and the connection is closed",
    test: "packages/hosting/src/requests/upload-pace.test.ts: that is too slow is aborted",
  },
  platform_bodies: {
    party: "anyone",
    entry: "bodies of the platform host's own routes",
    limit:
      "64 MiB and 4,096 bodies at a time; three quarters for one user, node or address range, less while others need some",
    effect: OVERLOADED,
    test: "packages/control-plane/src/http/requests/body-parser.test.ts: of one client leaves room for the bodies of others",
  },
  anonymous_body: {
    party: "anyone",
    entry:
      "routes of the platform host that need no credential in a header (enrollment, identity tokens, sign-in, OAuth, pages)",
    limit: "64 KiB, forms 32 KiB; 1 MiB with a credential",
    effect:
      "413 `request_too_large`; counts as a failure where failures are limited, like any other status from 400 to 499",
    counted: "`fairlead_http_requests_total`",
    test: "packages/control-plane/src/http/requests/body-parser.test.ts: without a credential is refused above 64 KiB",
  },
  json_structure: {
    party: "anyone",
    entry:
      "JSON from callers, providers, engines, identity providers, machine providers and Docker, before it is parsed",
    limit: "64 levels of nesting, 1,000,000 values",
    effect: "400 `malformed_json`; from an upstream 502 `upstream_failed`",
    counted: "`fairlead_http_requests_total`, `fairlead_inference_calls_total`",
    test: "packages/protocol/src/values/parse-json.test.ts: is rejected before parsing if it is nested too deeply",
  },
  converted_response: {
    party: "upstream",
    entry:
      "responses, and single events of streams, that are converted to the other dialect; non-streaming responses to chat turns",
    limit: "4 MiB",
    effect: "502 `upstream_failed`, or an error in the stream; nothing more is read from the upstream",
    counted: "`fairlead_inference_calls_total`",
    test: "packages/inference/src/calls/converted-limits.test.ts: is rejected once it exceeds 4 MiB",
  },
} as const satisfies BoundRows;
