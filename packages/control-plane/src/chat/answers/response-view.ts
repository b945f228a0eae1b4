import { AnswerIds } from "@fairlead/dialects/convert/bridge-call";
import type { ChatContext } from "@fairlead/dialects/convert/chat-to-responses/chat-to-responses-request";
import { toChatCompletion } from "@fairlead/dialects/convert/responses-to-chat/responses-to-chat-answer";
import { ChatStream } from "@fairlead/dialects/convert/responses-to-chat/responses-to-chat-stream";
import type { JsonObject } from "@fairlead/dialects/convert/wire";
import { chatFrame, DONE_FRAME } from "@fairlead/dialects/events/sse";
import { responseEvents } from "@fairlead/dialects/responses/whole-response";
import type { TurnDialect } from "../items/turn-dialect.ts";

/** A complete response as a stream in either dialect: an acknowledgement, or a repeated response. Pure. */

export interface ResponseViewOptions {
  readonly requestId: string;
  readonly dialect: TurnDialect;
  /** In the chat dialect: whether the client requested usage in the stream. */
  readonly includeUsage: boolean;
}

interface Teller {
  /** @returns complete frames, without `[DONE]`. */
  readonly frames: (response: JsonObject, telling: ResponseViewOptions) => readonly string[];
  readonly whole: (response: JsonObject, telling: ResponseViewOptions) => unknown;
}

const TELLERS: Readonly<Record<TurnDialect, Teller>> = {
  chat: {
    frames: chatFrames,
    whole: (response, telling) => toChatCompletion(response, chatContext(response, telling)),
  },
  responses: { frames: (response) => responseEvents(response).map(frame), whole: (response) => response },
};

/** @returns complete frames, including `[DONE]`. */
export function viewAsStream(response: JsonObject, telling: ResponseViewOptions): string {
  return TELLERS[telling.dialect].frames(response, telling).join("") + DONE_FRAME;
}

/** @returns the response as the dialect's JSON value. */
export function responseAsWhole(response: JsonObject, telling: ResponseViewOptions): unknown {
  return TELLERS[telling.dialect].whole(response, telling);
}

function chatFrames(response: JsonObject, telling: ResponseViewOptions): string[] {
  const stream = new ChatStream(chatContext(response, telling));
  return responseEvents(response)
    .flatMap((event) => stream.push(event))
    .map(chatFrame);
}

function chatContext(response: JsonObject, { requestId, includeUsage }: ResponseViewOptions): ChatContext {
  const { created_at: createdAt, model } = response;
  return {
    ids: new AnswerIds(requestId),
    createdAt: typeof createdAt === "number" ? createdAt : 0,
    model: typeof model === "string" ? model : "",
    stream: true,
    includeUsage,
    ignored: [],
  };
}

function frame(event: JsonObject): string {
  return `event: ${String(event["type"])}\ndata: ${JSON.stringify(event)}\n\n`;
}
