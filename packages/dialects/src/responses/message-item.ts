import type {
  ResponseOutputMessage,
  ResponseOutputRefusal,
  ResponseOutputText,
} from "openai/resources/responses/responses";
import { type Logprobs, toResponseLogprobs } from "../chat/logprobs.ts";
import type { FinalStatus, OutputItem, Place } from "./output-item.ts";

interface TextPart extends ResponseOutputText {
  logprobs: ResponseOutputText.Logprob[];
}

type Part = TextPart | ResponseOutputRefusal;

/** A message from the model: text and refusal parts, one open at a time. */
export class MessageItem implements OutputItem {
  readonly #place: Place;
  readonly #parts: Part[] = [];
  #isPartOpen = false;
  #status: FinalStatus | null = null;

  constructor(place: Place) {
    this.#place = place;
    place.emit({
      type: "response.output_item.added",
      output_index: place.index,
      item: { type: "message", id: place.id, role: "assistant", status: "in_progress", content: [] },
    });
  }

  text(delta: string, logprobs: Logprobs): void {
    const part = this.#textPart();
    const told = toResponseLogprobs(logprobs);
    part.text += delta;
    part.logprobs.push(...told);
    this.#place.emit({ type: "response.output_text.delta", ...this.#at, delta, logprobs: told });
  }

  refusal(delta: string): void {
    let part = this.#parts.at(-1);
    if (part?.type !== "refusal") part = this.#open({ type: "refusal", refusal: "" });
    part.refusal += delta;
    this.#place.emit({ type: "response.refusal.delta", ...this.#at, delta });
  }

  /** Only for existing text: an empty citation has no position. */
  annotate(found: readonly ResponseOutputText.URLCitation[]): void {
    const part = this.#parts.at(-1);
    if (part?.type !== "output_text") return;
    for (const annotation of found) {
      part.annotations.push(annotation);
      this.#place.emit({
        type: "response.output_text.annotation.added",
        ...this.#at,
        annotation_index: part.annotations.length - 1,
        annotation,
      });
    }
  }

  close(status: FinalStatus): void {
    if (this.#status) return;
    this.#closePart();
    this.#status = status;
    this.#place.emit({ type: "response.output_item.done", output_index: this.#place.index, item: this.view(status) });
  }

  view(status: FinalStatus): ResponseOutputMessage {
    const content = this.#parts.map(copyOf);
    return { type: "message", id: this.#place.id, role: "assistant", status: this.#status ?? status, content };
  }

  get #at() {
    return { item_id: this.#place.id, output_index: this.#place.index, content_index: this.#parts.length - 1 };
  }

  #textPart(): TextPart {
    const last = this.#parts.at(-1);
    return last?.type === "output_text"
      ? last
      : this.#open({ type: "output_text", text: "", annotations: [], logprobs: [] });
  }

  #open<P extends Part>(part: P): P {
    this.#closePart();
    this.#parts.push(part);
    this.#isPartOpen = true;
    this.#place.emit({ type: "response.content_part.added", ...this.#at, part: copyOf(part) });
    return part;
  }

  #closePart(): void {
    const part = this.#parts.at(-1);
    if (!part || !this.#isPartOpen) return;
    this.#isPartOpen = false;
    if (part.type === "refusal") {
      this.#place.emit({ type: "response.refusal.done", ...this.#at, refusal: part.refusal });
    } else {
      const { text, logprobs } = part;
      this.#place.emit({ type: "response.output_text.done", ...this.#at, text, logprobs: [...logprobs] });
    }
    this.#place.emit({ type: "response.content_part.done", ...this.#at, part: copyOf(part) });
  }
}

/** A copy, because events are handed out while the part keeps growing. */
function copyOf(part: Part): Part {
  return part.type === "refusal"
    ? { ...part }
    : { ...part, annotations: [...part.annotations], logprobs: [...part.logprobs] };
}
