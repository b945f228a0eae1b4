import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { errorAnswer, rawErrorAnswer, toDomainError } from "@fairlead/hosting/errors/error-response";
import {
  Admission,
  type AdmissionBound,
  type AdmissionBounds,
  type Load,
  shuttingDown,
} from "@fairlead/hosting/requests/admission";
import { headFault } from "@fairlead/hosting/requests/request-head";
import { type AnsweredRequest, RequestTally } from "@fairlead/hosting/requests/request-tally";
import { UploadPace } from "@fairlead/hosting/requests/upload-pace";
import { DomainError } from "@fairlead/protocol/errors";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { IdSource } from "@fairlead/protocol/values/ids";
import type { Logger } from "pino";
import { type CallBilling, NO_BILLING } from "../calls/call-money.ts";
import type { CallTraces } from "../calls/call-traces.ts";
import type { CallEnd } from "../calls/inference-call.ts";
import type { ModelCatalog } from "../calls/model-catalog.ts";
import { InferencePipeline } from "../calls/pipeline.ts";
import { type CallLimiter, NO_LIMITER } from "../ports/call-limiter.ts";
import type { KeptAnswers } from "../ports/kept-answers.ts";
import type { CallerAuthenticator, ProjectOwners } from "../ports/ports.ts";
import { UpstreamFailures } from "../routing/upstream-failures.ts";
import { UpstreamLeases } from "../routing/upstream-leases.ts";
import { type Exchange, sendError } from "./answer.ts";
import { corsOf } from "./inference-cors.ts";
import { InferenceCounters } from "./inference-counters.ts";
import { handleRoute, routeName } from "./inference-routes.ts";
import { DEFAULT_LIMITS, type InferenceLimits } from "./limits.ts";
import { LiveCalls } from "./live-calls.ts";
import { discardRest } from "./request-body.ts";

/** Counts how often a bound on outside input was reached. */
interface Bounds extends AdmissionBounds {
  reached(bound: AdmissionBound | "upload_pace"): void;
}

export interface InferenceHostOptions {
  readonly callers: CallerAuthenticator;
  readonly models: ModelCatalog;
  readonly ids: IdSource;
  readonly clock: Clock;
  readonly log: Logger;
  readonly limits?: Partial<InferenceLimits>;
  readonly limiter?: CallLimiter;
  readonly billing?: CallBilling;
  /** Absent: no tracing. */
  readonly traces?: CallTraces | undefined;
  /** Absent: each project is its own owner. */
  readonly owners?: ProjectOwners;
  /** Absent: no counting. */
  readonly bounds?: Bounds;
  /** Allowed origins of web pages; `*`: all. Absent: none. */
  readonly allowedOrigins?: readonly string[];
  /** Upstreams named in metrics. */
  readonly platformUpstreams?: ReadonlySet<string>;
  /** Absent: `Idempotency-Key` is ignored. */
  readonly answers?: KeptAnswers;
  /** In [0, 1): spreads retries after a shared failure. */
  readonly random?: () => number;
  /** Called once for every finished call; must not throw. */
  readonly onEnded?: (end: CallEnd) => void;
}

export interface InferenceHost {
  /** Not listening yet. */
  readonly server: Server;
  readonly load: Load;
  /** For calls from this process, each with a ticket of `admission`. */
  readonly pipeline: InferencePipeline;
  readonly admission: Admission;
  /** For bodies read within `admission`. */
  readonly pace: UploadPace;
  readonly owners: ProjectOwners;
  readonly counters: InferenceCounters;
  readonly places: UpstreamLeases;
  readonly requests: RequestTally;
  /** Stops admitting, waits for running calls until the deadline, then fails the rest. Resolves when everything is closed. */
  drain(deadlineMs: number): Promise<void>;
}

const OWN_OWNERS: ProjectOwners = { ownerOf: (projectId) => projectId };
const UNCOUNTED: Bounds = { reached: () => undefined };

const MAX_HEADER_BYTES = 64 * 1024;
/** Node silently drops headers beyond its own limit. */
const MAX_HEADERS = 200;
/** Above the 60 s idle timeout of common load balancers, so that they close first. */
const KEEP_ALIVE_MS = 75_000;
/** Check interval for slow and idle connections; cheap, because late ones come first. */
const CONNECTION_SWEEP_MS = 5000;
/** Time to flush the last responses of a drain. */
const FLUSH_MS = 1000;

export function createInferenceHost(options: InferenceHostOptions): InferenceHost {
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const { callers, models, clock, ids, log, bounds = UNCOUNTED } = options;
  const admission = new Admission(limits, bounds);
  const pace = uploadPace(limits, bounds);
  const live = new LiveCalls(clock, limits.sweepMs);
  const counters = new InferenceCounters(options.platformUpstreams);
  const requests = new RequestTally();
  const places = new UpstreamLeases(clock);
  const { limiter = NO_LIMITER, billing = NO_BILLING, onEnded = () => undefined, random = () => 0.5 } = options;
  const { traces = null, answers = null, owners = OWN_OWNERS } = options;
  const failures = new UpstreamFailures(log, clock, counters);
  const parts = { models, failures, live, clock, limits, counters, limiter, billing, traces, places, random, onEnded };
  const pipeline = new InferencePipeline(parts);
  const cors = corsOf(options.allowedOrigins ?? []);
  const calls = { callers, models, pipeline, admission, owners, pace, clock, limits, counters, limiter, answers, log };
  const deps = { ...calls, cors };
  const server = openServer(limits);
  const onRequest = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const begun = clock.monotonic();
    const exchange = { response, requestId: ids.next("request"), headers: cors?.headersFor(request) ?? {} };
    if (admission.stopped) response.shouldKeepAlive = false;
    try {
      refuseManyHeaders(request);
      const fault = headFault(request);
      if (fault !== null) throw fault;
      await handleRoute(deps, request, exchange);
    } catch (error) {
      report(log, exchange, error);
      sendError(exchange, error);
    }
    discardRest(request);
    requests.add(answered(request, response), (clock.monotonic() - begun) / 1000);
  };
  server.on("request", (request, response) => void onRequest(request, response));
  // `100 Continue` only for requests that will be read.
  server.on("checkContinue", (request, response) => void onRequest(request, response));
  server.on("clientError", (error, socket) => {
    if (live.uses(socket)) socket.destroy();
    else refuseConnection(error, socket, ids.next("request"));
  });
  return {
    server,
    pipeline,
    admission,
    pace,
    owners,
    counters,
    places,
    requests,
    get load() {
      return admission.load;
    },
    drain: (deadlineMs) => drain({ server, admission, live }, deadlineMs),
  };
}

function openServer(limits: InferenceLimits): Server {
  const server = createServer({
    maxHeaderSize: MAX_HEADER_BYTES,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // The first timeout also applies to silent connections.
    headersTimeout: Math.min(limits.headersMs, limits.uploadMs),
    requestTimeout: limits.uploadMs,
    connectionsCheckingInterval: Math.min(CONNECTION_SWEEP_MS, limits.headersMs, limits.uploadMs),
    noDelay: true,
  });
  server.maxHeadersCount = MAX_HEADERS;
  return server;
}

function uploadPace({ minUploadBytesPerSecond: bytesPerSecond }: InferenceLimits, bounds: Bounds): UploadPace {
  return new UploadPace({ bytesPerSecond, onSlow: () => bounds.reached("upload_pace") });
}

function answered(request: IncomingMessage, response: ServerResponse): AnsweredRequest {
  const status = response.headersSent ? response.statusCode : 0;
  return { method: request.method ?? "", route: routeName(request), status };
}

/** @throws DomainError headers_too_large */
function refuseManyHeaders({ rawHeaders }: IncomingMessage): void {
  if (rawHeaders.length <= 2 * MAX_HEADERS) return;
  throw new DomainError("headers_too_large", `The request has more than ${MAX_HEADERS} headers.`);
}

/** The only place that logs errors. Rejections are logged at a low level. */
function report(log: Logger, exchange: Exchange, error: unknown): void {
  const told = toDomainError(error);
  const { requestId } = exchange;
  if (told.code === "internal") log.error({ requestId, err: error }, "call failed");
  else log.debug({ requestId, code: told.code, note: told.note }, "call refused");
}

/** Responds to broken HTTP, oversized headers and slow uploads, which never become requests. */
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
    return new DomainError("headers_too_large", `The request headers exceed ${MAX_HEADER_BYTES} bytes.`);
  }
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") {
    return new DomainError("request_timeout", "The request did not arrive in full in time.");
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

/** Waits for a promise, up to this long. */
async function within(promise: Promise<void>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([promise, late]);
  clearTimeout(timer);
}
