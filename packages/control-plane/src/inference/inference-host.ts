import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import type { Clock } from "@fairlead/protocol/clock";
import { DomainError } from "@fairlead/protocol/errors";
import type { IdSource } from "@fairlead/protocol/ids";
import type { Logger } from "pino";
import type { AnswerService } from "../answers/answer-service.ts";
import { errorAnswer, rawErrorAnswer, toDomainError } from "../http/error-response.ts";
import { type AnsweredRequest, RequestTally } from "../http/request-tally.ts";
import { type CallLimiter, NO_LIMITER } from "../limits/call-limiter.ts";
import { Admission, type Load, shuttingDown } from "./admission.ts";
import { type Exchange, sendError } from "./answer.ts";
import { type CallBilling, NO_BILLING } from "./call-money.ts";
import type { CallTraces } from "./call-traces.ts";
import type { CallEnd } from "./inference-call.ts";
import { InferenceCounters } from "./inference-counters.ts";
import { handleRoute, routeName } from "./inference-routes.ts";
import { DEFAULT_LIMITS, type InferenceLimits } from "./limits.ts";
import { LiveCalls } from "./live-calls.ts";
import type { ModelCatalog } from "./model-catalog.ts";
import { InferencePipeline } from "./pipeline.ts";
import type { CallerAuthenticator } from "./ports.ts";
import { discardRest } from "./request-body.ts";
import { UpstreamPlaces } from "./upstream-places.ts";

export interface InferenceHostOptions {
  readonly callers: CallerAuthenticator;
  readonly models: ModelCatalog;
  readonly ids: IdSource;
  readonly clock: Clock;
  readonly log: Logger;
  readonly limits?: Partial<InferenceLimits>;
  readonly limiter?: CallLimiter;
  readonly billing?: CallBilling;
  /** Absent: nobody traces. */
  readonly traces?: CallTraces | undefined;
  /** Upstreams that metrics tell by name. */
  readonly platformUpstreams?: ReadonlySet<string>;
  /** Absent: `Idempotency-Key` means nothing here. */
  readonly answers?: AnswerService;
  /** In [0, 1): spreads what many calls do after the same failure. */
  readonly random?: () => number;
  /** Told once of every call that ends; must not throw. */
  readonly onEnded?: (end: CallEnd) => void;
}

export interface InferenceHost {
  /** Not listening yet. */
  readonly server: Server;
  readonly load: Load;
  /** For calls from inside this process, each with a ticket of `admission`. */
  readonly pipeline: InferencePipeline;
  readonly admission: Admission;
  readonly counters: InferenceCounters;
  readonly places: UpstreamPlaces;
  readonly requests: RequestTally;
  /** Stops admitting, lets running calls end until the deadline, then ends the rest as failed. Resolves with all closed. */
  drain(deadlineMs: number): Promise<void>;
}

const MAX_HEADER_BYTES = 64 * 1024;
/** Node would drop what is beyond its own limit without a word. */
const MAX_HEADERS = 200;
/** Above the 60 s after which common load balancers give an idle connection up, so that they close it first. */
const KEEP_ALIVE_MS = 75_000;
/** How often connections are looked at that send too slowly; looking costs little, since those that are late come first. */
const CONNECTION_SWEEP_MS = 5000;
/** How long the last words of a drain may take to be sent. */
const FLUSH_MS = 1000;

export function createInferenceHost(options: InferenceHostOptions): InferenceHost {
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const { callers, models, clock, ids, log } = options;
  const admission = new Admission(limits);
  const live = new LiveCalls(clock, limits.sweepMs);
  const counters = new InferenceCounters(options.platformUpstreams);
  const requests = new RequestTally();
  const places = new UpstreamPlaces(clock);
  const { limiter = NO_LIMITER, billing = NO_BILLING, onEnded = () => undefined, random = () => 0.5 } = options;
  const { traces = null, answers = null } = options;
  const parts = { models, live, clock, limits, counters, limiter, billing, traces, places, random, onEnded };
  const pipeline = new InferencePipeline(parts);
  const deps = { callers, models, pipeline, admission, clock, limits, counters, limiter, answers, log };
  const server = createServer({
    maxHeaderSize: MAX_HEADER_BYTES,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // A connection that says nothing at all is late by the first of them.
    headersTimeout: Math.min(limits.headersMs, limits.uploadMs),
    requestTimeout: limits.uploadMs,
    connectionsCheckingInterval: Math.min(CONNECTION_SWEEP_MS, limits.headersMs, limits.uploadMs),
    noDelay: true,
  });
  server.maxHeadersCount = MAX_HEADERS;
  const onRequest = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const begun = clock.monotonic();
    const exchange = { response, requestId: ids.next("request"), headers: {} };
    if (admission.stopped) response.shouldKeepAlive = false;
    try {
      refuseManyHeaders(request);
      await handleRoute(deps, request, exchange);
    } catch (error) {
      report(log, exchange, error);
      sendError(exchange, error);
    }
    discardRest(request);
    requests.add(answered(request, response), (clock.monotonic() - begun) / 1000);
  };
  server.on("request", (request, response) => void onRequest(request, response));
  // Only a request that will be read is told to go on sending.
  server.on("checkContinue", (request, response) => void onRequest(request, response));
  server.on("clientError", (error, socket) => {
    if (live.uses(socket)) socket.destroy();
    else refuseConnection(error, socket, ids.next("request"));
  });
  return {
    server,
    pipeline,
    admission,
    counters,
    places,
    requests,
    get load() {
      return admission.load;
    },
    drain: (deadlineMs) => drain({ server, admission, live }, deadlineMs),
  };
}

function answered(request: IncomingMessage, response: ServerResponse): AnsweredRequest {
  const status = response.headersSent ? response.statusCode : 0;
  return { method: request.method ?? "", route: routeName(request), status };
}

/** @throws DomainError headers_too_large */
function refuseManyHeaders({ rawHeaders }: IncomingMessage): void {
  if (rawHeaders.length <= 2 * MAX_HEADERS) return;
  throw new DomainError("headers_too_large", `There are more than ${MAX_HEADERS} headers.`);
}

/** Logged once, here; refusals are the caller's matter and only wanted when looking for something. */
function report(log: Logger, exchange: Exchange, error: unknown): void {
  const told = toDomainError(error);
  const { requestId } = exchange;
  if (told.code === "internal") log.error({ requestId, err: error }, "call failed");
  else log.debug({ requestId, code: told.code, note: told.note }, "call refused");
}

/** Answers what never became a request: broken HTTP, headers over the limit, an upload that takes too long. */
function refuseConnection(error: NodeJS.ErrnoException, socket: Duplex, requestId: string): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const answer = errorAnswer(connectionError(error.code), requestId);
  socket.end(rawErrorAnswer(answer, STATUS_CODES[answer.status] ?? ""), () => socket.destroy());
}

function connectionError(code: string | undefined): DomainError {
  if (code === "HPE_HEADER_OVERFLOW") {
    return new DomainError("headers_too_large", `The headers are larger than ${MAX_HEADER_BYTES} bytes.`);
  }
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") {
    return new DomainError("request_timeout", "The request did not arrive whole in time.");
  }
  return new DomainError("invalid_request", "This is not a valid HTTP/1.1 request.");
}

async function drain(
  host: { readonly server: Server; readonly admission: Admission; readonly live: LiveCalls },
  deadlineMs: number,
): Promise<void> {
  const { server, admission, live } = host;
  admission.stop();
  if (server.listening) server.close();
  await within(admission.whenIdle(), deadlineMs);
  live.failAll(shuttingDown());
  await within(admission.whenIdle(), FLUSH_MS);
  server.closeAllConnections();
  live.stop();
}

/** Waits for a promise, but not longer than this. */
async function within(promise: Promise<void>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([promise, late]);
  clearTimeout(timer);
}
