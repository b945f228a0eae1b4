import type { DomainError } from "@fairlead/protocol/errors";
import { doneAfter, type MadeEvent, responseFrame } from "../events/sse.ts";
import type { BridgeCall } from "./bridge-call.ts";
import { toResponse } from "./chat-to-responses/chat-to-responses-answer.ts";
import { ResponsesStream } from "./chat-to-responses/chat-to-responses-stream.ts";
import type { Conversion, ConvertedCall, ConvertedStream, OnOutput, Submitted } from "./conversion.ts";
import { type ResponsesContext, toChatRequest } from "./responses-to-chat/responses-to-chat-request.ts";
import type { ResponseEvent } from "./wire.ts";

/** A call of the responses dialect for an upstream that speaks chat. */
export function responsesOverChat({ body, onOutput = () => undefined }: Submitted, call: BridgeCall): ConvertedCall {
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

  push(event: unknown): readonly MadeEvent[] {
    return this.#made(this.#stream.push(event));
  }

  end(): readonly MadeEvent[] {
    return this.#made(this.#stream.end());
  }

  fail(error: DomainError): readonly MadeEvent[] {
    return this.#made(this.#stream.fail(error));
  }

  #made(events: readonly ResponseEvent[]): readonly MadeEvent[] {
    const last = events.at(-1);
    if (last === undefined) return [];
    if (last.type === "response.failed") this.failure = last.response.error?.message ?? "";
    else if (this.ended && "response" in last) this.#onOutput(last.response.output);
    return [...events.map((value) => ({ frame: responseFrame(value), value })), ...doneAfter(this)];
  }
}
