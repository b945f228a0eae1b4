import type { ChatEvent, ResponseEvent } from "./wire.ts";

/** Events as frames of `text/event-stream`. Each is one piece: a reader that sees half of one may forget it. */

export const DONE_FRAME = "data: [DONE]\n\n";

export const responseFrame = (event: ResponseEvent): string =>
  `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;

export const chatFrame = (event: ChatEvent): string => `data: ${JSON.stringify(event)}\n\n`;
