import { isObject, without } from "../inference/bridge/parse.ts";
import { toMessages } from "../inference/bridge/responses-input-to-messages.ts";
import { ToolNames } from "../inference/bridge/tool-names.ts";
import type { JsonObject } from "../inference/bridge/wire.ts";
import type { Dialect } from "../inference/dialect.ts";

/** The body of the call that a turn makes: the caller's, with the session in place of the messages. Pure. */

export interface TurnCallBody {
  readonly dialect: Dialect;
  /** As the caller submitted it. */
  readonly body: JsonObject;
  readonly model: string;
  readonly input: readonly JsonObject[];
}

/** What the session has in its own hands; all else goes on as submitted (interface §1). */
const SESSION_FIELDS = ["messages", "input", "model", "stream", "previous_response_id", "conversation"];

export function turnBody({ dialect, body, model, input }: TurnCallBody): JsonObject {
  const rest = without(body, SESSION_FIELDS);
  if (dialect === "responses") return { ...rest, model, input, stream: true };
  // `instructions` has no meaning in this dialect, and is the upstream's to judge.
  const { messages } = toMessages({ input }, { quirks: { developerRole: true }, names: new ToolNames() });
  if (!isStreamed(dialect, body)) return { ...rest, model, messages };
  const options = isObject(body["stream_options"]) ? body["stream_options"] : {};
  return { ...rest, model, messages, stream: true, stream_options: { ...options, include_usage: true } };
}

/** Whether the caller gets events: on the responses route by default, on the chat route as that dialect has it. */
export function isStreamed(dialect: Dialect, body: JsonObject): boolean {
  return dialect === "responses" ? body["stream"] !== false : body["stream"] === true;
}
