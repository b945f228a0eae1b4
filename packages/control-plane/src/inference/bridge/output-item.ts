import type { ResponseOutputItem } from "openai/resources/responses/responses";
import type { Emit } from "./wire.ts";

export type FinalStatus = "completed" | "incomplete";

/** Where an item stands in the output, and where its events go. */
export interface Place {
  readonly id: string;
  readonly index: number;
  readonly emit: Emit;
}

/** One item of a response while it grows. It tells of itself by events: added when it is made, done when it is closed. */
export interface OutputItem {
  /** Closes it, with what it holds. A second time does nothing. */
  close(status: FinalStatus): void;
  /** The item as it stands; once it is closed, as it was closed. */
  view(status: FinalStatus): ResponseOutputItem;
}
