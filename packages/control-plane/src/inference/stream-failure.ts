import { type DomainError, errorBody } from "@fairlead/protocol/errors";
import { responseEcho } from "./bridge/response-echo.ts";
import type { Dialect } from "./dialect.ts";

/** How an event stream that goes wrong after its 200 is ended: in the caller's dialect, never cleanly (design §8). */

/** What a caller has seen of a stream. */
export interface StreamSoFar {
  readonly dialect: Dialect;
  readonly requestId: string;
  /** Whether any event was sent. */
  readonly begun: boolean;
  /** Whether an error was told already, in the upstream's words. */
  readonly errorTold: boolean;
  /** In the responses dialect: the last event's number, or -1. */
  readonly sequence: number;
  /** In the responses dialect: of the first event; null where it told nothing. */
  readonly response: ResponseHead | null;
  /** The model as the caller named it. */
  readonly model: string;
  /** Unix seconds. */
  readonly createdAt: number;
}

export interface ResponseHead {
  readonly id: string;
  readonly model: string;
  readonly createdAt: number;
}

/** @returns whole events. */
export function failureEvents(stream: StreamSoFar, error: DomainError): string {
  const body = errorBody(error, stream.requestId);
  if (stream.dialect === "chat") return stream.errorTold ? "" : `data: ${JSON.stringify(body)}\n\n`;
  const head = stream.response ?? newHead(stream);
  const events: Numberless[] = [];
  // Clients that build the response up throw over any other first event.
  if (!stream.begun) events.push({ type: "response.created", response: response(head, "in_progress", null) });
  if (!stream.errorTold) {
    const { message, code, param } = body.error;
    // Flat and nested at once: some clients see only the one form, some only the other.
    events.push({ type: "error", message, code, param, error: body.error });
  }
  const failure = { code: "server_error", message: error.message };
  events.push({ type: "response.failed", response: response(head, "failed", failure) });
  return events.map((event, index) => frame({ ...event, sequence_number: stream.sequence + 1 + index })).join("");
}

interface Numberless {
  readonly type: string;
  readonly [field: string]: unknown;
}

const frame = (event: Numberless): string => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;

function newHead({ requestId, model, createdAt }: StreamSoFar): ResponseHead {
  return { id: requestId.replace(/^[a-z]+_/, "resp_"), model, createdAt };
}

function response(head: ResponseHead, status: "in_progress" | "failed", error: object | null): object {
  return {
    ...responseEcho({}),
    id: head.id,
    object: "response",
    created_at: head.createdAt,
    completed_at: null,
    status,
    model: head.model,
    output: [],
    error,
    incomplete_details: null,
    usage: null,
  };
}
