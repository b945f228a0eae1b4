import type { CallTrace, CallTraces, TracedCall } from "@fairlead/inference/calls/call-traces";
import { callerId } from "@fairlead/inference/calls/caller";
import type { CallEnd } from "@fairlead/inference/calls/inference-call";
import type { Clock } from "@fairlead/protocol/values/clock";
import type * as Api from "@opentelemetry/api";
import type { Attributes, Span, SpanContext, Tracer } from "@opentelemetry/api";
import type { ReadableSpan, SpanExporter } from "@opentelemetry/sdk-trace";
import type { Logger } from "pino";

/** A call in OpenTelemetry's words for generative AI, and ours where it has none. Never its content. Pure. */

/** Both dialects are `chat` there. */
const OPERATION = "chat";

function spanName({ model }: Pick<CallEnd, "model">): string {
  return model === null ? OPERATION : `${OPERATION} ${model}`;
}

function spanAttributes(end: CallEnd): Attributes {
  const { caller, usage, outcome, firstTokenMs } = end;
  return {
    "gen_ai.operation.name": OPERATION,
    "gen_ai.provider.name": end.upstreamId ?? undefined,
    "gen_ai.request.model": end.model ?? undefined,
    "gen_ai.usage.input_tokens": usage?.inputTokens,
    "gen_ai.usage.output_tokens": usage?.outputTokens,
    "gen_ai.usage.cache_read.input_tokens": usage?.cachedInputTokens,
    "http.response.status_code": end.status ?? undefined,
    "error.type": isFailure(end) ? outcome : undefined,
    "fairlead.request_id": end.id,
    "fairlead.project_id": caller.projectId,
    "fairlead.caller_id": callerId(caller),
    "fairlead.dialect": end.dialect,
    "fairlead.stream": end.stream,
    "fairlead.outcome": outcome,
    "fairlead.attempts": end.attempts,
    "fairlead.usage_estimated": end.estimated,
    "fairlead.first_token_ms": firstTokenMs ?? undefined,
    "fairlead.overhead_ms": end.overheadMs ?? undefined,
  };
}

/** A caller that leaves has not failed. */
function isFailure({ outcome }: Pick<CallEnd, "outcome">): boolean {
  return outcome !== "ok" && outcome !== "client_left";
}

/** W3C Trace Context, version 00. Pure. */

const TRACEPARENT = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/;
const SAMPLED = 1;

/** @returns null for none, and for one that is not as the standard says: then a trace begins here. */
function parentOf(traceparent: string | string[] | undefined): SpanContext | null {
  const [, traceId, spanId, flags] = typeof traceparent === "string" ? (TRACEPARENT.exec(traceparent) ?? []) : [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return null;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & SAMPLED, isRemote: true };
}

function traceparentOf({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}`;
}

export interface OtlpTracesOptions {
  /** Spans are posted to `/v1/traces` below it. */
  readonly endpoint: string;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface OtlpTraces extends CallTraces {
  /** Sends remaining spans, with a short timeout. */
  close(): Promise<void>;
}

const SERVICE = "fairlead";
/** Timeout of a request, including the last one. */
const EXPORT_MS = 2000;
const EXPORT_EVERY_MS = 1000;

/** Loads OpenTelemetry only if tracing is on. */
export async function openOtlpTraces({ endpoint, clock, log }: OtlpTracesOptions): Promise<OtlpTraces> {
  const [api, sdk, { OTLPTraceExporter }, { resourceFromAttributes }] = await Promise.all([
    import("@opentelemetry/api"),
    import("@opentelemetry/sdk-trace"),
    import("@opentelemetry/exporter-trace-otlp-http"),
    import("@opentelemetry/resources"),
  ]);
  const exporter = new OTLPTraceExporter({ url: `${endpoint}/v1/traces`, timeoutMillis: EXPORT_MS });
  const provider = new sdk.TracerProvider({
    resource: resourceFromAttributes({ "service.name": SERVICE }),
    spanProcessors: [
      new sdk.BatchSpanProcessor({
        exporter: new ToldExporter(exporter, log),
        scheduledDelayMillis: EXPORT_EVERY_MS,
        exportTimeoutMillis: EXPORT_MS,
      }),
    ],
  });
  const tracer = provider.getTracer(SERVICE);
  return {
    begin: (call) => beginSpan(call, { api, tracer, clock }),
    close: async () => {
      await provider
        .shutdown()
        .catch((error: unknown) => log.warn({ err: error }, "the last traces could not be sent"));
    },
  };
}

interface SpanParts {
  readonly api: typeof Api;
  readonly tracer: Tracer;
  readonly clock: Clock;
}

function beginSpan({ headers, begunAt }: TracedCall, { api, tracer, clock }: SpanParts): CallTrace {
  const parent = parentOf(headers["traceparent"]);
  const context = parent === null ? api.ROOT_CONTEXT : api.trace.setSpanContext(api.ROOT_CONTEXT, parent);
  const startTime = new Date(clock.now() - (clock.monotonic() - begunAt));
  const span = tracer.startSpan("call", { kind: api.SpanKind.CLIENT, startTime }, context);
  return {
    traceparent: traceparentOf(span.spanContext()),
    end: (end) => endSpan(span, end, { api, startTime }),
  };
}

function endSpan(
  span: Span,
  end: CallEnd,
  { api, startTime }: Pick<SpanParts, "api"> & { readonly startTime: Date },
): void {
  span.updateName(spanName(end));
  span.setAttributes(spanAttributes(end));
  if (isFailure(end)) span.setStatus({ code: api.SpanStatusCode.ERROR, message: end.outcome });
  span.end(new Date(startTime.getTime() + end.durationMs));
}

type ExportResult = Parameters<Parameters<SpanExporter["export"]>[1]>[0];

/** Logs when sending starts to fail and when it works again, which the library does not. */
class ToldExporter implements SpanExporter {
  readonly #exporter: SpanExporter;
  readonly #log: Logger;
  #failing = false;

  constructor(exporter: SpanExporter, log: Logger) {
    this.#exporter = exporter;
    this.#log = log;
  }

  export(spans: ReadableSpan[], done: (result: ExportResult) => void): void {
    this.#exporter.export(spans, (result) => {
      const failed = result.error !== undefined;
      if (failed && !this.#failing) this.#log.warn({ err: result.error }, "traces cannot be sent and are dropped");
      if (!failed && this.#failing) this.#log.info("traces are being sent again");
      this.#failing = failed;
      done(result);
    });
  }

  async shutdown(): Promise<void> {
    await this.#exporter.shutdown();
  }

  async forceFlush(): Promise<void> {
    await this.#exporter.forceFlush?.();
  }
}
