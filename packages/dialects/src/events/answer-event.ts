import { jsonOr } from "../json/json-or.ts";
import { eventData } from "./event-data.ts";
import { eventEnds } from "./event-splitter.ts";

/** The end of a stream in the chat dialect; streams of responses may have it too. */
const DONE = "[DONE]";

/** One whole event of a response stream, parsed. */
export interface AnswerEvent {
  /** As the caller gets it. */
  readonly bytes: Buffer;
  /** Its data, parsed; null for a comment and for data that is not JSON. */
  readonly value: unknown;
  /** Whether it is `data: [DONE]`. */
  readonly isDone: boolean;
}

export const isDone = (data: string): boolean => data.trim() === DONE;

export function readAnswerEvent(bytes: Buffer): AnswerEvent {
  const { data } = eventData(bytes.toString("utf8"));
  if (data === null) return { bytes, value: null, isDone: false };
  return isDone(data) ? { bytes, value: null, isDone: true } : { bytes, value: jsonOr(data, null), isDone: false };
}

/** @returns the events of frames that are made here, for a sink that reads events. */
export function eventsFor(
  { readsEvents }: { readonly readsEvents: boolean },
  bytes: Buffer,
): AnswerEvent[] | undefined {
  return readsEvents ? readAnswerEvents(bytes) : undefined;
}

/** @param bytes of whole events. */
export function readAnswerEvents(bytes: Buffer): AnswerEvent[] {
  let start = 0;
  return eventEnds(bytes).map((end) => {
    const event = readAnswerEvent(bytes.subarray(start, end));
    start = end;
    return event;
  });
}
