import type { IncomingHttpHeaders } from "node:http";
import { DomainError } from "@fairlead/protocol/errors";
import type { Ticket } from "../inference/admission.ts";
import { isObject } from "../inference/bridge/parse.ts";
import type { JsonObject } from "../inference/bridge/wire.ts";
import type { Dialect } from "../inference/dialect.ts";
import type { ChatScope } from "./chat-scope.ts";
import type { Telling } from "./told-response.ts";
import { isStreamed } from "./turn-body.ts";
import type { Audience, Rejection } from "./turn-sink.ts";

/** A turn as it was asked for. */
export interface TurnCall {
  /** The request's id; every trace of the turn bears it. */
  readonly id: string;
  readonly scope: ChatScope;
  /** As the caller named it; null where none was. */
  readonly sessionId: string | null;
  readonly dialect: Dialect;
  readonly body: JsonObject;
  /** SHA-256 (hex) of what was asked, as it was submitted. */
  readonly requestHash: string;
  readonly idempotencyKey: string | null;
  /** The caller's; few of them go to an upstream. */
  readonly headers: IncomingHttpHeaders;
  readonly ticket: Ticket;
  /** As an inference call's. */
  readonly begunAt: number;
  readonly uploadMs: number;
}

/** Who waits for a turn. */
export interface TurnCaller extends Audience {
  /** Aborted when they leave. */
  readonly gone: AbortSignal;
  /** Which session it is, before anything else is said. */
  tellSession(sessionId: string): void;
}

/** What a turn is answered, where it does not throw. */
export type TurnAnswer =
  /** All went out while it ran, or nobody listens any more. */
  | { readonly kind: "told" }
  /** A whole event stream. */
  | { readonly kind: "events"; readonly events: string }
  /** JSON. */
  | { readonly kind: "whole"; readonly body: Buffer }
  /** The upstream's refusal, in its own words. */
  | { readonly kind: "rejected"; readonly rejection: Rejection };

export const TOLD: TurnAnswer = { kind: "told" };

export function tellingOf({ id: requestId, dialect, body }: TurnCall): Telling {
  const options = body["stream_options"];
  return { requestId, dialect, includeUsage: isObject(options) && options["include_usage"] === true };
}

export const streams = ({ dialect, body }: TurnCall): boolean => isStreamed(dialect, body);

/** @returns null where the caller leaves the choice. @throws DomainError `invalid_request` */
export function modelNamedIn(body: JsonObject): string | null {
  const { model = null } = body;
  if (model === null || (typeof model === "string" && model !== "")) return model;
  throw new DomainError("invalid_request", "`model`: must be a text, `<provider>/<model>`.", { param: "model" });
}

/** Names a call among all others; its repeats have the same name. @param what it is. */
export function callName({ scope, sessionId, idempotencyKey }: TurnCall, what: string): string {
  return JSON.stringify([scope.projectId, scope.userId, sessionId, idempotencyKey, what]);
}
