import type { DomainError } from "@fairlead/protocol/errors";
import type { Dialect } from "../dialect.ts";
import type { BridgeCall } from "./bridge-call.ts";
import { toResponse } from "./chat-to-responses-answer.ts";
import { type ChatContext, toResponsesRequest } from "./chat-to-responses-request.ts";
import { ResponsesStream } from "./chat-to-responses-stream.ts";
import { toChatCompletion } from "./responses-to-chat-answer.ts";
import { type ResponsesContext, toChatRequest } from "./responses-to-chat-request.ts";
import { ChatStream } from "./responses-to-chat-stream.ts";
import { chatFrame, DONE_FRAME, responseFrame } from "./sse.ts";
import type { ChatEvent, ResponseEvent, ResponseObject } from "./wire.ts";

/** Told once of what a response that did not fail holds, for callers that refer to its items. */
export type OnOutput = (output: ResponseObject["output"]) => void;

/** A call of one dialect as one of the other. */
export interface ConvertedCall {
  /** JSON. */
  readonly request: string;
  readonly conversion: Conversion;
}

/** How the answer to a converted call, whole or a stream, becomes one of its caller's dialect. */
export interface Conversion {
  /** What the upstream speaks. */
  readonly dialect: Dialect;
  /** Paths of the request's parts that stay without effect. */
  readonly ignored: readonly string[];
  stream(): ConvertedStream;
  /** @param answer parsed. @returns JSON. @throws DomainError `upstream_failed` for what is no answer, or a failed one. */
  whole(answer: unknown): string;
}

/** Makes whole frames of `text/event-stream`, each in the moment in which it is known; "" where there is none. */
export interface ConvertedStream {
  /** @param event one event's data, parsed; or a whole answer. */
  push(event: unknown): string;
  /** The upstream's stream ended. */
  end(): string;
  /** The call cannot go on. */
  fail(error: DomainError): string;
  /** Whether the last frame was made. */
  readonly ended: boolean;
  /** What it tells of a failure; null where it tells of none. */
  readonly failure: string | null;
}

export interface Submitted {
  /** Of the body, which is converted to the other one. */
  readonly dialect: Dialect;
  /** Parsed by `parseExact`. */
  readonly body: unknown;
  readonly onOutput?: OnOutput;
}

/** @throws DomainError `invalid_request` or `previous_response_not_found`, with `param`. */
export function convertCall(submitted: Submitted, call: BridgeCall): ConvertedCall {
  return submitted.dialect === "responses" ? toChat(submitted, call) : toResponses(submitted, call);
}

function toChat({ body, onOutput = () => undefined }: Submitted, call: BridgeCall): ConvertedCall {
  const { request, context } = toChatRequest(body, call);
  const conversion: Conversion = {
    dialect: "chat",
    ignored: context.ignored,
    stream: () => new ResponsesFrames(context, onOutput),
    whole: (answer) => {
      const response = toResponse(answer, context);
      onOutput(response.output);
      return JSON.stringify(response);
    },
  };
  return { request: JSON.stringify(request), conversion };
}

function toResponses({ body }: Submitted, call: BridgeCall): ConvertedCall {
  const { request, context } = toResponsesRequest(body, call);
  const conversion: Conversion = {
    dialect: "responses",
    ignored: context.ignored,
    stream: () => new ChatFrames(context),
    whole: (answer) => JSON.stringify(toChatCompletion(answer, context)),
  };
  return { request: JSON.stringify(request), conversion };
}

class ResponsesFrames implements ConvertedStream {
  readonly #stream: ResponsesStream;
  readonly #onOutput: OnOutput;
  failure: string | null = null;

  constructor(context: ResponsesContext, onOutput: OnOutput) {
    this.#stream = new ResponsesStream(context);
    this.#onOutput = onOutput;
  }

  get ended(): boolean {
    return this.#stream.ended;
  }

  push(event: unknown): string {
    return this.#frames(this.#stream.push(event));
  }

  end(): string {
    return this.#frames(this.#stream.end());
  }

  fail(error: DomainError): string {
    return this.#frames(this.#stream.fail(error));
  }

  #frames(events: readonly ResponseEvent[]): string {
    const last = events.at(-1);
    if (last === undefined) return "";
    if (last.type === "response.failed") this.failure = last.response.error?.message ?? "";
    else if (this.ended && "response" in last) this.#onOutput(last.response.output);
    return events.map(responseFrame).join("") + doneAfter(this);
  }
}

class ChatFrames implements ConvertedStream {
  readonly #stream: ChatStream;
  failure: string | null = null;

  constructor(context: ChatContext) {
    this.#stream = new ChatStream(context);
  }

  get ended(): boolean {
    return this.#stream.ended;
  }

  push(event: unknown): string {
    return this.#frames(this.#stream.push(asEvent(event)));
  }

  end(): string {
    return this.#frames(this.#stream.end());
  }

  fail(error: DomainError): string {
    return this.#frames(this.#stream.fail(error));
  }

  #frames(events: readonly ChatEvent[]): string {
    const last = events.at(-1);
    if (last === undefined) return "";
    if ("error" in last) this.failure = last.error.message;
    return events.map(chatFrame).join("") + doneAfter(this);
  }
}

/** After a failure it would say that all is well. */
const doneAfter = ({ ended, failure }: ConvertedStream): string => (ended && failure === null ? DONE_FRAME : "");

/** A whole response is told by the event that would have ended its stream. */
function asEvent(value: unknown): unknown {
  const isWhole = typeof value === "object" && value !== null && "object" in value && value.object === "response";
  return isWhole ? { type: "response.completed", response: value } : value;
}
