import type { ResponsesItem } from "./chat-item.ts";

/** What one turn adds to its session (design §7). Pure. */
export interface NewTurnItems {
  /** The last user message, or what tools gave for calls of the answer before. */
  readonly kind: "question" | "outputs";
  readonly items: readonly ResponsesItem[];
  /** Of the question; "" for outputs, and for one without text. */
  readonly text: string;
  /** The body's system and developer messages: for this turn alone, never stored. */
  readonly instructions: readonly ResponsesItem[];
}
