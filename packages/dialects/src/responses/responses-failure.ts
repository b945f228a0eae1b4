import { type DomainError, errorBody } from "@fairlead/protocol/errors";
import type { ResponseIdentity, StreamSoFar } from "../events/stream-failure.ts";
import { responseEcho } from "./response-echo.ts";

/** @returns the events that end a failed stream of this dialect. */
export function responsesFailure(stream: StreamSoFar, error: DomainError): string {
  const head = stream.response ?? newHead(stream);
  const events: Numberless[] = [];
  // Clients that assemble the response fail on any other first event.
  if (!stream.begun) events.push({ type: "response.created", response: response(head, "in_progress", null) });
  if (!stream.errorTold) {
    const told = errorBody(error, stream.requestId).error;
    const { message, code, param } = told;
    // Both flat and nested, because some clients read only one of the two forms.
    events.push({ type: "error", message, code, param, error: told });
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

function newHead({ requestId, model, createdAt }: StreamSoFar): ResponseIdentity {
  return { id: requestId.replace(/^[a-z]+_/, "resp_"), model, createdAt };
}

function response(head: ResponseIdentity, status: "in_progress" | "failed", error: object | null): object {
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
