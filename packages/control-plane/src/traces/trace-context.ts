import type { SpanContext } from "@opentelemetry/api";

/** W3C Trace Context, version 00. Pure. */

const TRACEPARENT = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/;
const SAMPLED = 1;

/** @returns null for none, and for one that is not as the standard says: then a trace begins here. */
export function parentOf(traceparent: string | string[] | undefined): SpanContext | null {
  const [, traceId, spanId, flags] = typeof traceparent === "string" ? (TRACEPARENT.exec(traceparent) ?? []) : [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return null;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & SAMPLED, isRemote: true };
}

export function traceparentOf({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}`;
}
