import type { IncomingMessage } from "node:http";
import type { Clock } from "@fairlead/protocol/clock";
import { DomainError } from "@fairlead/protocol/errors";
import type { Admission, Ticket } from "./admission.ts";
import type { Exchange } from "./answer.ts";
import { headersForUpstream } from "./answer-headers.ts";
import { type CallScan, scanCall } from "./call-scan.ts";
import { authenticateCaller } from "./caller.ts";
import type { InferenceLimits } from "./limits.ts";
import type { LiveCalls } from "./live-calls.ts";
import type { ModelRoute, ModelRouter } from "./model-route.ts";
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
}

/**
 * `POST /v1/chat/completions`: size → key → body → model → dispatch (design §8).
 * Resolves when the call is over in every way. @throws DomainError before anything was answered.
 */
export async function chatCall(deps: CallDependencies, request: IncomingMessage, exchange: Exchange): Promise<void> {
  const ticket = deps.admission.enter();
  try {
    checkBodyHeaders(request, deps.limits.maxBodyBytes);
    const owner = await authenticateCaller(deps.keys, request.headers);
    if (request.headers.expect !== undefined) exchange.response.writeContinue();
    const body = await readBody(request, ticket, deps.limits.maxBodyBytes);
    if (body === null) return;
    const model = requireModel(scanCall(body));
    const route = await deps.models.route(owner.projectId, model.name);
    const upstreamRequest = prepare(request, splice(body, model.span, modelValue(route.model)));
    body.length = 0;
    if (!exchange.response.destroyed) await relay(deps, { exchange, ticket, route, upstreamRequest });
  } finally {
    ticket.leave();
  }
}

interface Dispatch {
  readonly exchange: Exchange;
  readonly ticket: Ticket;
  readonly route: ModelRoute;
  readonly upstreamRequest: UpstreamRequest;
}

function relay(deps: CallDependencies, dispatch: Dispatch): Promise<void> {
  const { limits, clock, live } = deps;
  const onAnswered = (): void => dispatch.ticket.releaseBytes();
  const call = new Relay(dispatch.exchange, { limits, now: clock.monotonic(), onAnswered });
  live.add(call);
  call.start(dispatch.route.upstream, dispatch.upstreamRequest);
  return call.closed.finally(() => live.delete(call));
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
