import type { IncomingMessage } from "node:http";
import type { Clock } from "@fairlead/protocol/clock";
import { toDomainError } from "../http/error-response.ts";
import type { Admission, Ticket } from "./admission.ts";
import type { Exchange } from "./answer.ts";
import { authenticateCaller } from "./caller.ts";
import type { Dialect } from "./dialect.ts";
import { HttpSink } from "./http-sink.ts";
import type { CallOutcome } from "./inference-call.ts";
import type { InferenceCounters } from "./inference-counters.ts";
import type { InferenceLimits } from "./limits.ts";
import type { ModelCatalog } from "./model-catalog.ts";
import type { InferencePipeline, RunningCall } from "./pipeline.ts";
import type { CallerAuthenticator } from "./ports.ts";
import { checkBodyHeaders, readBody } from "./request-body.ts";

export interface CallDependencies {
  readonly callers: CallerAuthenticator;
  readonly models: ModelCatalog;
  readonly pipeline: InferencePipeline;
  readonly admission: Admission;
  readonly clock: Clock;
  readonly limits: InferenceLimits;
  readonly counters: InferenceCounters;
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
  try {
    deps.counters.ended(await admit(deps, { request, dialect, ...exchange, begunAt: deps.clock.monotonic() }));
  } catch (error) {
    deps.counters.ended(toDomainError(error).code);
    throw error;
  }
}

interface Arrival extends Exchange {
  readonly request: IncomingMessage;
  readonly dialect: Dialect;
  /** Monotonic milliseconds. */
  readonly begunAt: number;
}

async function admit(deps: CallDependencies, arrival: Arrival): Promise<CallOutcome> {
  const ticket = deps.admission.enter();
  try {
    const running = await begin(deps, arrival, ticket);
    return running === null ? "client_left" : (await running.ended).outcome;
  } finally {
    ticket.leave();
  }
}

/** Apart from `admit`, so that nothing that waits for a long answer keeps the request's body in memory. */
async function begin(deps: CallDependencies, arrival: Arrival, ticket: Ticket): Promise<RunningCall | null> {
  const { request, response, requestId, dialect, begunAt } = arrival;
  const { callers, clock, limits, pipeline } = deps;
  checkBodyHeaders(request, limits.maxBodyBytes);
  const caller = await authenticateCaller(callers, request.headers);
  if (request.headers.expect !== undefined) response.writeContinue();
  const uploadFrom = clock.monotonic();
  const body = await readBody(request, ticket, limits.maxBodyBytes);
  if (body === null) return null;
  const uploadMs = clock.monotonic() - uploadFrom;
  const { headers } = request;
  const call = { id: requestId, caller, dialect, body, headers, ticket, begunAt, uploadMs };
  return await pipeline.start(call, new HttpSink(arrival));
}
