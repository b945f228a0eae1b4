import type { Dialect } from "./calls/dialect.ts";
import { chatSpec } from "./chat/chat-spec.ts";
import { chatOverResponses } from "./convert/chat-over-responses.ts";
import type { Converter } from "./convert/conversion.ts";
import { responsesOverChat } from "./convert/responses-over-chat.ts";
import type { DialectSpec } from "./dialect-spec.ts";
import { responsesSpec } from "./responses/responses-spec.ts";

/** A new dialect does not compile until it has its record here, and an entry in every row of the converters. */

export const DIALECT_SPECS: Readonly<Record<Dialect, DialectSpec>> = {
  chat: chatSpec,
  responses: responsesSpec,
};

/** By the dialect of the call, then that of the upstream. Null: such a call cannot be converted, or need not be. */
export const CONVERTERS: Readonly<Record<Dialect, Readonly<Record<Dialect, Converter | null>>>> = {
  chat: { chat: null, responses: chatOverResponses },
  responses: { chat: responsesOverChat, responses: null },
};
