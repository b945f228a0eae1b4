import type { IncomingMessage } from "node:http";
import type { Clock } from "@fairlead/protocol/clock";
import type { Logger } from "pino";
import type { AnswerService } from "../answers/answer-service.ts";
import { toDomainError } from "../http/error-response.ts";
import type { CallLimiter } from "../limits/call-limiter.ts";
import type { Admission, Ticket } from "./admission.ts";
import { type Exchange, sendKept } from "./answer.ts";
import { authenticateCaller } from "./caller.ts";
import type { Dialect } from "./dialect.ts";
import { HttpSink } from "./http-sink.ts";
import type { InferenceCall } from "./inference-call.ts";
import type { InferenceCounters } from "./inference-counters.ts";
import type { InferenceLimits } from "./limits.ts";
import type { ModelCatalog } from "./model-catalog.ts";
import type { InferencePipeline } from "./pipeline.ts";
import type { CallerAuthenticator } from "./ports.ts";
import { type Begun, beginRepeatable, findKept, idempotencyKeyOf, REPLAYED } from "./repeatable-call.ts";
import { checkBodyHeaders, readBody } from "./request-body.ts";

export interface CallDependencies {
  readonly callers: CallerAuthenticator;
  readonly models: ModelCatalog;
  readonly pipeline: InferencePipeline;
  readonly admission: Admission;
  readonly clock: Clock;
  readonly limits: InferenceLimits;
  readonly counters: InferenceCounters;
  readonly limiter: CallLimiter;
  readonly answers: AnswerService | null;
  readonly log: Logger;
}

/**
 * The HTTP edge of a call: size → key → body, then the pipeline (design §8). Resolves when the call is over in every way.
 * @throws DomainError before anything was answered.
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

/** Apart from `httpCall`, so that nothing that waits for a long answer keeps the request's body in memory. */
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

/** @returns null where the caller left meanwhile. */
async function receive(
  { callers, clock, limits }: CallDependencies,
  { request, response, requestId, dialect, begunAt }: Arrival,
  ticket: Ticket,
): Promise<InferenceCall | null> {
  checkBodyHeaders(request, limits.maxBodyBytes);
  const caller = await authenticateCaller(callers, request.headers);
  ticket.belongsTo(caller.projectId);
  const idempotencyKey = idempotencyKeyOf(request.headers);
  if (request.headers.expect !== undefined) response.writeContinue();
  const uploadFrom = clock.monotonic();
  const body = await readBody(request, ticket, limits.maxBodyBytes);
  if (body === null) return null;
  const uploadMs = clock.monotonic() - uploadFrom;
  const { headers } = request;
  const call = { id: requestId, caller, dialect, body, headers, ticket, begunAt, uploadMs };
  return idempotencyKey === null ? call : { ...call, idempotencyKey };
}

/** What the pipeline never sees, it cannot count. */
async function counted<T>(counters: InferenceCounters, dialect: Dialect, step: () => T | Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (error) {
    counters.turnedAway(toDomainError(error).code, dialect);
    throw error;
  }
}
