import type { JsonObject } from "../inference/bridge/wire.ts";

/** One item of a session's history (design §7). Pure. */

/** Its JSON as it was submitted or streamed: a message, a call, the output of one, thinking. */
export type ResponsesItem = JsonObject;

/** `superseded`: of a turn that was asked again; out of history and input. */
export type ChatItemStatus = "completed" | "incomplete" | "superseded";

export interface ChatItem {
  /** The item's own id where it has one that is new in its session: the id that was streamed is the id that is stored. */
  readonly id: string;
  readonly turnId: string;
  /** Counts up within the session; what a superseded turn had is not given again. */
  readonly position: number;
  readonly status: ChatItemStatus;
  readonly item: ResponsesItem;
  /** Unix milliseconds. */
  readonly createdAt: number;
}
