import { ToolNames } from "@fairlead/dialects/chat/tool-names";
import { toMessages } from "@fairlead/dialects/convert/responses-to-chat/responses-input-to-messages";
import type { JsonObject } from "@fairlead/dialects/convert/wire";
import { isObject, without } from "@fairlead/dialects/json/parse";
import type { TurnDialect } from "./turn-dialect.ts";

/** The body of a turn's call: the caller's, with the session's history as its messages. Pure. */

export interface TurnCallBody {
  readonly dialect: TurnDialect;
  /** As the caller sent it. */
  readonly body: JsonObject;
  readonly input: readonly JsonObject[];
}

/** Fields that the session sets; all others are passed through (docs/interface.md §1). */
const SESSION_FIELDS = ["messages", "input", "model", "stream", "previous_response_id", "conversation"];

/** @returns the body without the model. */
export function turnBody({ dialect, body, input }: TurnCallBody): JsonObject {
  return CALLS[dialect].body(without(body, SESSION_FIELDS), input, isStreamed(dialect, body));
}

/** Whether the client gets events. */
export function isStreamed(dialect: TurnDialect, { stream }: JsonObject): boolean {
  return CALLS[dialect].streamsByDefault ? stream !== false : stream === true;
}

interface CallForm {
  readonly streamsByDefault: boolean;
  /** @param rest fields passed through. @param streamed whether the client gets events. */
  readonly body: (rest: JsonObject, input: readonly JsonObject[], streamed: boolean) => JsonObject;
}

const CALLS: Readonly<Record<TurnDialect, CallForm>> = {
  chat: { streamsByDefault: false, body: chatBody },
  responses: { streamsByDefault: true, body: (rest, input) => ({ ...rest, input, stream: true }) },
};

function chatBody(rest: JsonObject, input: readonly JsonObject[], streamed: boolean): JsonObject {
  // `instructions` has no meaning in this dialect; the upstream decides.
  const { messages } = toMessages({ input }, { quirks: { developerRole: true }, names: new ToolNames() });
  if (!streamed) return { ...rest, messages };
  const options = isObject(rest["stream_options"]) ? rest["stream_options"] : {};
  return { ...rest, messages, stream: true, stream_options: { ...options, include_usage: true } };
}
