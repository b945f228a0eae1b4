import type { IncomingMessage } from "node:http";
import type { Dialect } from "@fairlead/dialects/calls/dialect";
import { toDomainError } from "@fairlead/hosting/errors/error-response";
import type { Admission, Ticket } from "@fairlead/hosting/requests/admission";
import type { UploadPace } from "@fairlead/hosting/requests/upload-pace";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { Logger } from "pino";
import { authenticateCaller } from "../calls/caller.ts";
import type { InferenceCall } from "../calls/inference-call.ts";
import type { ModelCatalog } from "../calls/model-catalog.ts";
import type { InferencePipeline } from "../calls/pipeline.ts";
import type { CallLimiter } from "../ports/call-limiter.ts";
import type { KeptAnswers } from "../ports/kept-answers.ts";
import type { CallerAuthenticator, ProjectOwners } from "../ports/ports.ts";
import { type Exchange, sendKept } from "./answer.ts";
import { HttpSink } from "./http-sink.ts";
import type { InferenceCounters } from "./inference-counters.ts";
import type { InferenceLimits } from "./limits.ts";
import { type Begun, beginRepeatable, findKept, idempotencyKeyOf, REPLAYED } from "./repeatable-call.ts";
import { checkBodyHeaders, readBody } from "./request-body.ts";

export interface CallDependencies {
  readonly callers: CallerAuthenticator;
  readonly models: ModelCatalog;
  readonly pipeline: InferencePipeline;
  readonly admission: Admission;
  readonly owners: ProjectOwners;
  readonly pace: UploadPace;
  readonly clock: Clock;
  readonly limits: InferenceLimits;
  readonly counters: InferenceCounters;
  readonly limiter: CallLimiter;
  readonly answers: KeptAnswers | null;
  readonly log: Logger;
}

/**
 * HTTP entry point of a call: size → key → body, then the pipeline (decisions/0017). Resolves when everything has finished.
 * @throws DomainError if no response was started.
 */
export async function httpCall(
  deps: CallDependencies,
  dialect: Dialect,
  { request, exchange }: { readonly request: IncomingMessage; readonly exchange: Exchange },
): Promise<void> {
  const arrival = { request, dialect, ...exchange, begunAt: deps.clock.monotonic() };
  const ticket = await counted(deps.counters, dialect, () => deps.admission.enter());
  try {
    const running = await begin(deps, arrival, ticket);
    await running?.ended;
  } finally {
    ticket.leave();
  }
}

interface Arrival extends Exchange {
  readonly request: IncomingMessage;
  readonly dialect: Dialect;
  /** Monotonic milliseconds. */
  readonly begunAt: number;
}

/** Separate from `httpCall`, so that waiting for a long response does not keep the request body in memory. */
async function begin(deps: CallDependencies, arrival: Arrival, ticket: Ticket): Promise<Begun | null> {
  const { counters, pipeline, answers } = deps;
  const call = await counted(counters, arrival.dialect, () => receive(deps, arrival, ticket));
  if (call === null) {
    counters.turnedAway("client_left", arrival.dialect);
    return null;
  }
  if (answers === null || call.idempotencyKey === undefined) return await pipeline.start(call, new HttpSink(arrival));
  const { kept, claim } = await counted(counters, arrival.dialect, () => findKept(answers, call));
  if (claim !== null) return await beginRepeatable(deps, claim, { call, exchange: arrival });
  counters.turnedAway("replayed", arrival.dialect);
  Object.assign(arrival.headers, REPLAYED, await deps.limiter.headersFor(call.caller));
  sendKept(arrival, kept);
  return null;
}

/** @returns null if the client disconnected meanwhile. */
async function receive(
  { callers, owners, pace, clock, limits }: CallDependencies,
  { request, response, requestId, dialect, begunAt }: Arrival,
  ticket: Ticket,
): Promise<InferenceCall | null> {
  checkBodyHeaders(request, limits.maxBodyBytes);
  const caller = await authenticateCaller(callers, request.headers);
  const owner = owners.ownerOf(caller.projectId);
  ticket.belongsTo(typeof owner === "string" ? owner : await owner);
  const idempotencyKey = idempotencyKeyOf(request.headers);
  if (request.headers.expect !== undefined) response.writeContinue();
  const uploadFrom = clock.monotonic();
  const body = await readBody(request, { ticket, pace, maxBytes: limits.maxBodyBytes });
  if (body === null) return null;
  const uploadMs = clock.monotonic() - uploadFrom;
  const { headers } = request;
  const call = { id: requestId, caller, dialect, body, headers, ticket, begunAt, uploadMs };
  return idempotencyKey === null ? call : { ...call, idempotencyKey };
}

/** Counts calls that fail before the pipeline, which cannot count them. */
async function counted<T>(counters: InferenceCounters, dialect: Dialect, step: () => T | Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (error) {
    counters.turnedAway(toDomainError(error).code, dialect);
    throw error;
  }
}
