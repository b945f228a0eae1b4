import type { DomainError } from "@fairlead/protocol/errors";
import { chatFrame, doneAfter, type MadeEvent } from "../events/sse.ts";
import type { BridgeCall } from "./bridge-call.ts";
import { type ChatContext, toResponsesRequest } from "./chat-to-responses/chat-to-responses-request.ts";
import type { Conversion, ConvertedCall, ConvertedStream, Submitted } from "./conversion.ts";
import { toChatCompletion } from "./responses-to-chat/responses-to-chat-answer.ts";
import { ChatStream } from "./responses-to-chat/responses-to-chat-stream.ts";
import type { ChatEvent } from "./wire.ts";

/** Converts a chat call for an upstream that speaks responses. */
export function chatOverResponses({ body }: Submitted, call: BridgeCall): ConvertedCall {
  const { request, context } = toResponsesRequest(body, call);
  const conversion: Conversion = {
    dialect: "responses",
    ignored: context.ignored,
    stream: () => new ChatFrames(context),
    whole: (answer) => JSON.stringify(toChatCompletion(answer, context)),
  };
  return { request: JSON.stringify(request), conversion };
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

  push(event: unknown): readonly MadeEvent[] {
    return this.#made(this.#stream.push(asEvent(event)));
  }

  end(): readonly MadeEvent[] {
    return this.#made(this.#stream.end());
  }

  fail(error: DomainError): readonly MadeEvent[] {
    return this.#made(this.#stream.fail(error));
  }

  #made(events: readonly ChatEvent[]): readonly MadeEvent[] {
    const last = events.at(-1);
    if (last === undefined) return [];
    if ("error" in last) this.failure = last.error.message;
    return [...events.map((value) => ({ frame: chatFrame(value), value })), ...doneAfter(this)];
  }
}

/** Wraps a complete response in the event that would have ended its stream. */
function asEvent(value: unknown): unknown {
  const isWhole = typeof value === "object" && value !== null && "object" in value && value.object === "response";
  return isWhole ? { type: "response.completed", response: value } : value;
}
