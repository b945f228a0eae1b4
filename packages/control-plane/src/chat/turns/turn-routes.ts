import { createHash } from "node:crypto";
import type { OutgoingHttpHeaders } from "node:http";
import type { JsonObject } from "@fairlead/dialects/convert/wire";
import { parseExact } from "@fairlead/dialects/json/exact-json";
import { objectAt } from "@fairlead/dialects/json/parse";
import type { Admission, Ticket } from "@fairlead/hosting/requests/admission";
import type { UploadPace } from "@fairlead/hosting/requests/upload-pace";
import { checkBodyHeaders, readBody } from "@fairlead/inference/host/request-body";
import type { ProjectOwners } from "@fairlead/inference/ports/ports";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { FastifyReply, FastifyRequest, FastifySchemaCompiler } from "fastify";
import type { z } from "zod";
import type { ProjectAccess } from "../../access/auth/access.ts";
import type { PlatformApp } from "../../http/platform-host.ts";
import { requirePrincipal } from "../../http/requests/require-principal.ts";
import { zodValidator } from "../../http/requests/validation.ts";
import { rejectionAnswer } from "../answers/chat-errors.ts";
import type { ChatScope } from "../items/chat-scope.ts";
import type { TurnDialect } from "../items/turn-dialect.ts";
import { headerOf, scopeOf } from "../sessions/chat-request.ts";
import { createChatCompletion, createResponse, regenerateAnswer, stopTurn } from "../sessions/turn-route-schemas.ts";
import { HttpAudience } from "./http-audience.ts";
import { streams, type TurnAnswer, type TurnCall, type TurnCaller } from "./turn-call.ts";
import type { TurnService } from "./turn-service.ts";

export interface TurnRouteServices {
  readonly chatTurns: TurnService;
  readonly access: ProjectAccess;
  /** The inference host's pipeline: a turn is one of its calls. */
  readonly admission: Admission;
  readonly pace: UploadPace;
  readonly owners: ProjectOwners;
  readonly maxBodyBytes: number;
  readonly clock: Clock;
}

/** Runs a turn. */
type Take = (call: TurnCall, caller: TurnCaller) => Promise<TurnAnswer>;

const SESSION_PATH = "/v1/chat/sessions/:id(^[^:]+)";

/** Turns (docs/interface.md §4.1). Bodies are read within the inference host's memory budget, not by the framework. */
export function registerTurnRoutes(app: PlatformApp, services: TurnRouteServices): void {
  const onRequest = requirePrincipal("user");
  const { chatTurns } = services;
  void app.register(async (scope: PlatformApp) => {
    scope.removeContentTypeParser("application/json");
    scope.addContentTypeParser("application/json", (request, payload, done) => {
      request.bodyTicket?.leave();
      done(null, payload);
    });
    scope.setValidatorCompiler(validateAllButBody);
    const take: Take = (call, caller) => chatTurns.take(call, caller);

    scope.post("/v1/chat/responses", { onRequest, schema: createResponse }, (request, reply) =>
      answerTurn(services, { request, reply, dialect: "responses", take }),
    );

    scope.post("/v1/chat/completions", { onRequest, schema: createChatCompletion }, (request, reply) =>
      answerTurn(services, { request, reply, dialect: "chat", take }),
    );

    scope.post(`${SESSION_PATH}::regenerate`, { onRequest, schema: regenerateAnswer }, (request, reply) => {
      const sessionId = request.params.id;
      const again: Take = (call, caller) => chatTurns.regenerate({ ...call, sessionId }, caller);
      return answerTurn(services, { request, reply, dialect: "responses", take: again });
    });

    scope.post(`${SESSION_PATH}::stop`, { onRequest, schema: stopTurn }, async (request) => {
      const stopped = await chatTurns.stop(await scopeOf(services.access, request, "chat.use"), request.params.id);
      return { stopped };
    });
  });
}

/** The body is not read yet when the framework validates it; the schema is only for the document. */
const validateAllButBody: FastifySchemaCompiler<z.ZodType> = (route) =>
  route.httpPart === "body" ? (value: unknown) => ({ value }) : zodValidator(route);

interface Exchange {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly dialect: TurnDialect;
  readonly take: Take;
}

async function answerTurn(services: TurnRouteServices, exchange: Exchange): Promise<void> {
  const { admission, clock } = services;
  const begunAt = clock.monotonic();
  const scope = await scopeOf(services.access, exchange.request, "chat.use");
  const ticket = admission.enter();
  try {
    ticket.belongsTo(await services.owners.ownerOf(scope.projectId));
    const call = await receive(services, exchange, { scope, ticket, begunAt });
    if (call !== null) await runTurn(exchange, call);
  } finally {
    ticket.leave();
  }
}

/** @returns null if the caller disconnected. */
async function receive(
  { maxBodyBytes, pace, clock }: TurnRouteServices,
  { request, dialect }: Exchange,
  { scope, ticket, begunAt }: { readonly scope: ChatScope; readonly ticket: Ticket; readonly begunAt: number },
): Promise<TurnCall | null> {
  const { raw, headers, id } = request;
  const uploadFrom = clock.monotonic();
  checkBodyHeaders(raw, maxBodyBytes);
  const pieces = await readBody(raw, { ticket, pace, maxBytes: maxBodyBytes });
  if (pieces === null) return null;
  const uploadMs = clock.monotonic() - uploadFrom;
  const sessionId = headerOf(request, "service-session-id");
  const idempotencyKey = headerOf(request, "idempotency-key");
  const body = parsedBody(pieces);
  const requestHash = hashOf(request, pieces);
  return { id, scope, sessionId, dialect, body, requestHash, idempotencyKey, headers, ticket, begunAt, uploadMs };
}

function hashOf({ url }: FastifyRequest, pieces: readonly Buffer[]): string {
  const hash = createHash("sha256").update(`${url}\n`);
  for (const piece of pieces) hash.update(piece);
  return hash.digest("hex");
}

function parsedBody(pieces: readonly Buffer[]): JsonObject {
  const bytes = Buffer.concat(pieces);
  return bytes.length === 0 ? {} : objectAt(parseExact(bytes), "body");
}

async function runTurn({ request, reply, take }: Exchange, call: TurnCall): Promise<void> {
  const audience = new HttpAudience({
    response: reply.raw,
    streams: streams(call),
    setHeaders: (headers) => void reply.headers(headers),
    takeOver: () => {
      void reply.hijack();
      return reply.getHeaders() as OutgoingHttpHeaders;
    },
  });
  try {
    send(reply, await take(call, audience));
  } catch (error) {
    if (!reply.sent) throw error;
    request.log.error({ err: error }, "a turn failed during its response");
    audience.break();
  }
}

function send(reply: FastifyReply, answer: TurnAnswer): void {
  switch (answer.kind) {
    case "told":
      return;
    case "events":
      void reply.type("text/event-stream; charset=utf-8").send(answer.events);
      return;
    case "whole":
      void reply.type("application/json; charset=utf-8").send(answer.body);
      return;
    case "rejected": {
      const { headers, body } = rejectionAnswer(answer.rejection);
      void reply.code(400).headers(headers).send(body);
    }
  }
}
