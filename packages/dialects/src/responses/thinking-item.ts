import type { ResponseReasoningItem } from "openai/resources/responses/responses";
import type { FinalStatus, OutputItem, Place } from "./output-item.ts";

/** The model's thinking, sent as a summary: the only form that both specifications and all clients support. */
export class ThinkingItem implements OutputItem {
  readonly #place: Place;
  #text = "";
  #status: FinalStatus | null = null;

  constructor(place: Place) {
    this.#place = place;
    place.emit({
      type: "response.output_item.added",
      output_index: place.index,
      item: { type: "reasoning", id: place.id, summary: [], status: "in_progress" },
    });
    place.emit({
      type: "response.reasoning_summary_part.added",
      ...this.#at,
      part: { type: "summary_text", text: "" },
    });
  }

  add(delta: string): void {
    this.#text += delta;
    this.#place.emit({ type: "response.reasoning_summary_text.delta", ...this.#at, delta });
  }

  close(status: FinalStatus): void {
    if (this.#status) return;
    this.#status = status;
    const { emit, index } = this.#place;
    const text = this.#text;
    emit({ type: "response.reasoning_summary_text.done", ...this.#at, text });
    emit({ type: "response.reasoning_summary_part.done", ...this.#at, part: { type: "summary_text", text } });
    emit({ type: "response.output_item.done", output_index: index, item: this.view(status) });
  }

  view(status: FinalStatus): ResponseReasoningItem {
    return {
      type: "reasoning",
      id: this.#place.id,
      summary: [{ type: "summary_text", text: this.#text }],
      status: this.#status ?? status,
    };
  }

  get #at() {
    return { item_id: this.#place.id, output_index: this.#place.index, summary_index: 0 };
  }
}
