import type { IncomingHttpHeaders } from "node:http";
import type { CallEnd, InferenceCall } from "./inference-call.ts";

/** Where calls are traced, if anywhere. */
export interface CallTraces {
  begin(call: TracedCall): CallTrace;
}

export type TracedCall = Pick<InferenceCall, "id" | "caller" | "dialect" | "headers" | "begunAt">;

export interface CallTrace {
  /** For the upstream: this call as the parent of what it does. */
  readonly traceparent: string;
  end(end: CallEnd): void;
}

/** The caller's headers, as they go on: what an upstream does belongs below our own part of the trace. */
export function tracedHeaders(headers: IncomingHttpHeaders, trace: CallTrace | null): IncomingHttpHeaders {
  return trace === null ? headers : { ...headers, traceparent: trace.traceparent };
}
