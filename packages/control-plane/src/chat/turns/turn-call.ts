import { createHash } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { JsonObject } from "@fairlead/dialects/convert/wire";
import { isObject } from "@fairlead/dialects/json/parse";
import type { Ticket } from "@fairlead/hosting/requests/admission";
import { DomainError } from "@fairlead/protocol/errors";
import type { ResponseViewOptions } from "../answers/response-view.ts";
import type { Audience, Rejection } from "../answers/turn-sink.ts";
import type { ChatScope } from "../items/chat-scope.ts";
import { isStreamed } from "../items/turn-body.ts";
import type { TurnDialect } from "../items/turn-dialect.ts";

/** A requested turn. */
export interface TurnCall {
  /** The request's id, which all traces of the turn carry. */
  readonly id: string;
  readonly scope: ChatScope;
  /** As the caller named it; null for none. */
  readonly sessionId: string | null;
  readonly dialect: TurnDialect;
  readonly body: JsonObject;
  /** SHA-256 (hex) of the request as it was sent. */
  readonly requestHash: string;
  readonly idempotencyKey: string | null;
  /** The caller's headers; few are forwarded. */
  readonly headers: IncomingHttpHeaders;
  readonly ticket: Ticket;
  /** As for an inference call. */
  readonly begunAt: number;
  readonly uploadMs: number;
}

/** The client that waits for a turn. */
export interface TurnCaller extends Audience {
  /** Aborted on disconnect. */
  readonly gone: AbortSignal;
  /** Reports the session before anything is sent. */
  tellSession(sessionId: string): void;
}

/** The result of a turn that does not throw. */
export type TurnAnswer =
  /** Everything was sent while it ran, or the client has disconnected. */
  | { readonly kind: "told" }
  /** A complete event stream. */
  | { readonly kind: "events"; readonly events: string }
  /** JSON. */
  | { readonly kind: "whole"; readonly body: Buffer }
  /** The upstream's error, verbatim. */
  | { readonly kind: "rejected"; readonly rejection: Rejection };

export const TOLD: TurnAnswer = { kind: "told" };

export function tellingOf({ id: requestId, dialect, body }: TurnCall): ResponseViewOptions {
  const options = body["stream_options"];
  return { requestId, dialect, includeUsage: isObject(options) && options["include_usage"] === true };
}

export const streams = ({ dialect, body }: TurnCall): boolean => isStreamed(dialect, body);

/** @returns null if the caller does not name a model. @throws DomainError `invalid_request` */
export function modelNamedIn(body: JsonObject): string | null {
  const { model = null } = body;
  if (model === null || (typeof model === "string" && model !== "")) return model;
  throw new DomainError("invalid_request", "`model`: must be a string of the form `<provider>/<model>`.", {
    param: "model",
  });
}

/** An id for the call that its retries share. @param what identifies it. */
export function callName({ scope, sessionId, idempotencyKey }: TurnCall, what: string): string {
  const name = JSON.stringify([scope.projectId, scope.userId, sessionId, idempotencyKey, what]);
  // Hashed to a fixed length, whatever the length of the headers.
  return createHash("sha256").update(name).digest("base64url");
}
