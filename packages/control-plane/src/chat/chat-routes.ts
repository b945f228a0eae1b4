import { errorAnswer } from "@fairlead/hosting/errors/error-response";
import type { DomainError } from "@fairlead/protocol/errors";
import type { FastifyReply } from "fastify";
import { explainError } from "../http/http-app.ts";
import type { PlatformApp } from "../http/platform-host.ts";
import { chatError, statusOfChatError } from "./answers/chat-errors.ts";
import { allowOrigins, answerPreflights } from "./chat-cors.ts";
import { registerSessionRoutes, type SessionRouteServices } from "./sessions/session-routes.ts";
import { registerTurnRoutes, type TurnRouteServices } from "./turns/turn-routes.ts";

export interface ChatRouteServices {
  readonly sessions: SessionRouteServices;
  readonly turns: TurnRouteServices;
  readonly allowedOrigins: readonly string[];
}

/** Everything under `/v1/chat` (docs/interface.md §4.1): the same errors, and the same leave for web pages of other origins. */
export function registerChatRoutes(app: PlatformApp, services: ChatRouteServices): void {
  void app.register(async (scope: PlatformApp) => {
    const urls = new Set<string>();
    scope.addHook("onRoute", ({ url, method }) => void (method === "OPTIONS" || urls.add(url)));
    allowOrigins(scope, services.allowedOrigins);
    scope.setErrorHandler((thrown, request, reply) => {
      sendChatError(reply, chatError(explainError(thrown, request).error), request.id);
    });
    registerSessionRoutes(scope, services.sessions);
    registerTurnRoutes(scope, services.turns);
    // As a scope of its own it comes after those of the routes.
    void scope.register(async (last: PlatformApp) => answerPreflights(last, [...urls]));
  });
}

function sendChatError(reply: FastifyReply, error: DomainError, requestId: string): void {
  const { headers, body } = errorAnswer(error, requestId);
  void reply.code(statusOfChatError(error)).headers(headers).send(body);
}
