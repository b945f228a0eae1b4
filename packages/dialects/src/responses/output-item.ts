import type { ResponseOutputItem } from "openai/resources/responses/responses";
import type { Emit } from "../convert/wire.ts";

export type FinalStatus = "completed" | "incomplete";

/** Position of an item in the output, and the target of its events. */
export interface Place {
  readonly id: string;
  readonly index: number;
  readonly emit: Emit;
}

/** An item of a response in progress. Emits an added event when created and a done event when closed. */
export interface OutputItem {
  /** Closes it with its current content. Idempotent. */
  close(status: FinalStatus): void;
  /** The current item, or the final one after `close`. */
  view(status: FinalStatus): ResponseOutputItem;
}
