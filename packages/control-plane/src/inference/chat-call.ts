import type { IncomingMessage } from "node:http";
import type { Clock } from "@fairlead/protocol/clock";
import { DomainError } from "@fairlead/protocol/errors";
import { toDomainError } from "../http/error-response.ts";
import type { Admission, Ticket } from "./admission.ts";
import type { Exchange } from "./answer.ts";
import { headersForUpstream } from "./answer-headers.ts";
import { type CallScan, scanCall } from "./call-scan.ts";
import { authenticateCaller } from "./caller.ts";
import type { CallOutcome, InferenceCounters } from "./inference-counters.ts";
import type { InferenceLimits } from "./limits.ts";
import type { LiveCalls } from "./live-calls.ts";
import type { ModelRouter } from "./model-route.ts";
import type { KeyAuthenticator } from "./ports.ts";
import { Relay } from "./relay.ts";
import { checkBodyHeaders, readBody } from "./request-body.ts";
import { modelValue, splice } from "./splice.ts";
import type { UpstreamRequest } from "./upstream.ts";

const CHAT_PATH = "/v1/chat/completions";

/** Up to this size one write is cheaper than several. */
const JOIN_BYTES = 16 * 1024;

export interface CallDependencies {
  readonly keys: KeyAuthenticator;
  readonly models: ModelRouter;
  readonly admission: Admission;
  readonly live: LiveCalls;
  readonly clock: Clock;
  readonly limits: InferenceLimits;
  readonly counters: InferenceCounters;
}

/**
 * `POST /v1/chat/completions`: size → key → body → model → dispatch (design §8).
 * Resolves when the call is over in every way. @throws DomainError before anything was answered.
 */
export async function chatCall(deps: CallDependencies, request: IncomingMessage, exchange: Exchange): Promise<void> {
  try {
    deps.counters.ended(await runCall(deps, request, exchange));
  } catch (error) {
    deps.counters.ended(toDomainError(error).code);
    throw error;
  }
}

async function runCall(deps: CallDependencies, request: IncomingMessage, exchange: Exchange): Promise<CallOutcome> {
  const ticket = deps.admission.enter();
  try {
    checkBodyHeaders(request, deps.limits.maxBodyBytes);
    const relay = await beginCall(deps, request, { ...exchange, ticket });
    if (relay === null) return "client_left";
    await relay.closed;
    deps.live.delete(relay);
    return relay.outcome;
  } finally {
    ticket.leave();
  }
}

interface AdmittedExchange extends Exchange {
  readonly ticket: Ticket;
}

/** Apart from `chatCall`, so that nothing that waits for a long answer keeps the request's body in memory. */
async function beginCall(
  deps: CallDependencies,
  request: IncomingMessage,
  exchange: AdmittedExchange,
): Promise<Relay | null> {
  const { ticket, response } = exchange;
  const owner = await authenticateCaller(deps.keys, request.headers);
  if (request.headers.expect !== undefined) response.writeContinue();
  const body = await readBody(request, ticket, deps.limits.maxBodyBytes);
  if (body === null) return null;
  const model = requireModel(scanCall(body));
  const route = await deps.models.route(owner.projectId, model.name);
  if (response.destroyed) return null;
  const { limits, clock, counters } = deps;
  const now = clock.monotonic();
  const onAnswered = (): void => {
    ticket.releaseBytes();
    counters.firstByte.observe((clock.monotonic() - now) / 1000);
  };
  const relay = new Relay(exchange, { limits, now, onAnswered, counters });
  deps.live.add(relay);
  relay.start(route.upstream, prepare(request, splice(body, model.span, modelValue(route.model))));
  return relay;
}

function prepare(request: IncomingMessage, body: Buffer[]): UpstreamRequest {
  const length = body.reduce((sum, piece) => sum + piece.length, 0);
  return {
    method: "POST",
    path: CHAT_PATH,
    headers: headersForUpstream(request.headers, length),
    body: length <= JOIN_BYTES ? [Buffer.concat(body, length)] : body,
  };
}

function requireModel(scan: CallScan): NonNullable<CallScan["model"]> {
  if (scan.model !== null) return scan.model;
  const message = "No default model is configured: name one in `model`. GET /v1/models lists what this key can call.";
  throw new DomainError("invalid_request", message, { param: "model" });
}
