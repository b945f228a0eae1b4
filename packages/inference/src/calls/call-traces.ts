import type { IncomingHttpHeaders } from "node:http";
import type { CallEnd, InferenceCall } from "./inference-call.ts";

/** The tracer of calls, if configured. */
export interface CallTraces {
  begin(call: TracedCall): CallTrace;
}

export type TracedCall = Pick<InferenceCall, "id" | "caller" | "dialect" | "headers" | "begunAt">;

export interface CallTrace {
  /** Sent to the upstream, with this call as the parent span. */
  readonly traceparent: string;
  end(end: CallEnd): void;
}

/** The caller's headers as forwarded: upstream spans become children of ours. */
export function tracedHeaders(headers: IncomingHttpHeaders, trace: CallTrace | null): IncomingHttpHeaders {
  return trace === null ? headers : { ...headers, traceparent: trace.traceparent };
}
