import type { BoundRows } from "./bound-row.ts";

const READER = "packages/wire/src/http1/http1-bounds.test.ts";
const FAILED = "the call fails with `upstream_failed`, and its connection closes";
const COUNTED = '`fairlead_inference_calls_total{outcome="upstream_failed"}`';

/** What providers and engines may return. */
export const UPSTREAM_BOUNDS = {
  upstream_line: {
    party: "upstream",
    entry: "head, chunk or trailer of an HTTP/1.1 response",
    limit: "16 KiB per line (status, header, chunk size with extensions, trailer)",
    effect: FAILED,
    counted: COUNTED,
    test: `${READER}: a response is rejected beyond`,
  },
  upstream_head: {
    party: "upstream",
    entry: "head or trailers of an HTTP/1.1 response",
    limit: "64 KiB of heads and 256 headers, including at most 16 informational responses; the same for trailers",
    effect: FAILED,
    counted: COUNTED,
    test: `${READER}: 64 KiB of final and informational heads together`,
  },
  upstream_syntax: {
    party: "upstream",
    entry: "HTTP/1.1 response",
    limit: "never more lenient than Node's parser; work linear in the bytes",
    effect: FAILED,
    counted: COUNTED,
    test: "packages/wire/src/http1/http1-differential.test.ts: a response that Node's parser rejects is never accepted, and one that both accept reads the same",
  },
  upstream_retry_after: {
    party: "upstream",
    entry: "`retry-after`, `retry-after-ms`",
    limit: "3,600 s, counted from the response; 10,000 paused models of upstreams",
    effect: "it is called again after that time; the least recently used pause is dropped",
    counted: '`fairlead_upstream_failures_total{reason="rate_limited"}`, `{reason="overloaded"}`',
    test: "packages/inference/src/calls/busy-upstreams.test.ts: is paused for at most an hour",
  },
  upstream_leading_space: {
    party: "upstream",
    entry: "whitespace before a JSON response",
    limit: "64 KiB per response",
    effect: "the call fails with `upstream_failed`",
    counted: COUNTED,
    test: "packages/inference/src/calls/no-response.test.ts: fails with 502, reports what was received, and costs nothing",
  },
  upstream_decoded: {
    party: "upstream",
    entry: "compressed response that is converted or an error",
    limit:
      "the same limits as a plain one, applied after decompression: 4 MiB if it must be complete; one coding; zstd windows of 8 MiB",
    effect: "the call fails with `upstream_failed`, and its connection closes",
    counted: COUNTED,
    test: "packages/inference/src/relay/compressed-responses.test.ts: fails with 502 if too long after decompression",
  },
  upstream_failure_lines: {
    party: "upstream",
    entry: "log lines about failures",
    limit: "1 line per project, upstream and reason in 10 s; 1,000 of these tracked",
    effect: "further failures are only counted; the next line includes their number",
    counted: "`fairlead_upstream_failures_total`",
    test: "packages/inference/src/routing/upstream-failures.test.ts: is counted for every attempt, and logged every ten seconds",
  },
  upstream_idle: {
    party: "upstream",
    entry: "keep-alive connections",
    limit: "256 idle connections per provider, for at most 10 minutes",
    effect: "further connections close after their response",
    counted: "none: nothing is rejected",
    test: "packages/wire/src/http1/connection-pool.test.ts: keeps at most 256 free connections, whatever the other side allows",
  },
  engine_facts: {
    party: "workload",
    entry: "an engine's health, models and version, read by its node's daemon",
    limit:
      "1 MiB per response, 64 levels of nesting, 256 models with names of up to 256 characters; 5 s, or the timeout of the health check",
    effect: "the check fails; the models stay unknown",
    counted: "the node's conditions",
    test: "packages/daemon/src/link/http-client.test.ts: a body of more than a megabyte is refused",
  },
} as const satisfies BoundRows;
