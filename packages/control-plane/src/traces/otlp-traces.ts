import type { Clock } from "@fairlead/protocol/clock";
import type * as Api from "@opentelemetry/api";
import type { Span, Tracer } from "@opentelemetry/api";
import type { ReadableSpan, SpanExporter } from "@opentelemetry/sdk-trace";
import type { Logger } from "pino";
import type { CallTrace, CallTraces, TracedCall } from "../inference/call-traces.ts";
import type { CallEnd } from "../inference/inference-call.ts";
import { isFailure, spanAttributes, spanName } from "./call-span.ts";
import { parentOf, traceparentOf } from "./trace-context.ts";

export interface OtlpTracesOptions {
  /** Spans go to `/v1/traces` below it. */
  readonly endpoint: string;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface OtlpTraces extends CallTraces {
  /** Sends what is left, but waits for nobody long. */
  close(): Promise<void>;
}

const SERVICE = "fairlead";
/** Of one sending, the last one too. */
const EXPORT_MS = 2000;
const EXPORT_EVERY_MS = 1000;

/** Loads OpenTelemetry now: whoever wants no traces pays nothing for them. */
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

/** Says once that traces do not arrive, and once that they do again: the library keeps it to itself. */
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
      if (failed && !this.#failing)
        this.#log.warn({ err: result.error }, "traces cannot be sent; they are dropped meanwhile");
      if (!failed && this.#failing) this.#log.info("traces are sent again");
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
