import type { ConvertedStream } from "../convert/conversion.ts";
import type { ChatEvent, ResponseEvent } from "../convert/wire.ts";

/** Events as frames of `text/event-stream`. Each is one piece: a reader that sees half of one may forget it. */

export const DONE_FRAME = "data: [DONE]\n\n";

/** An event of a stream that is made here: its frame, and what the frame says; null for `[DONE]`. */
export interface MadeEvent {
  readonly frame: string;
  readonly value: ResponseEvent | ChatEvent | null;
}

export const MADE_DONE: MadeEvent = { frame: DONE_FRAME, value: null };

export const framesOf = (events: readonly MadeEvent[]): string => events.map(({ frame }) => frame).join("");

export const responseFrame = (event: ResponseEvent): string =>
  `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;

export const chatFrame = (event: ChatEvent): string => `data: ${JSON.stringify(event)}\n\n`;

/** The last event, once a converted stream has ended. After a failure it would say that all is well. */
export const doneAfter = ({ ended, failure }: ConvertedStream): readonly MadeEvent[] =>
  ended && failure === null ? [MADE_DONE] : [];
