import { isDeepStrictEqual } from "node:util";

/**
 * The order of a responses stream, which no schema can express:
 *
 *     created, in_progress?, ( item )*, completed | incomplete | ( error?, failed )
 *     message       = item.added, ( part.added, delta+, text.done | refusal.done, part.done )*, item.done
 *     function_call = item.added, arguments.delta*, arguments.done, item.done
 *     reasoning     = item.added, ( summary_part.added, summary_text.delta+, summary_text.done, summary_part.done )*, item.done
 *
 * Items may overlap. Only a failed stream may leave them open. Hosted tools' own events need only an open item.
 */

type Json = Readonly<Record<string, unknown>>;

/** @throws Error that lists every broken rule. */
export function assertResponsesOrder(events: readonly unknown[]): void {
  const problems = responsesOrderProblems(events);
  if (problems.length > 0) throw new Error(`The stream breaks the order of responses:\n- ${problems.join("\n- ")}`);
}

export function responsesOrderProblems(events: readonly unknown[]): readonly string[] {
  const check = new OrderCheck();
  for (const event of events) check.event(event as Json);
  return check.finish();
}

interface Part {
  readonly kind: "output_text" | "refusal" | "summary_text" | "reasoning_text";
  text: string;
  deltas: number;
  state: "open" | "told" | "done";
}

interface Item {
  readonly id: unknown;
  readonly type: unknown;
  readonly parts: Part[];
  /** Arguments or input. */
  text: string;
  isTold: boolean;
  final: Json | null;
}

const AT_PART = ["item_id", "output_index", "content_index"];
const AT_SUMMARY = ["item_id", "output_index", "summary_index"];
const AT_ITEM = ["item_id", "output_index"];

const REQUIRED: Readonly<Record<string, readonly string[]>> = {
  "response.created": ["response"],
  "response.in_progress": ["response"],
  "response.output_item.added": ["output_index", "item"],
  "response.content_part.added": [...AT_PART, "part"],
  "response.output_text.delta": [...AT_PART, "delta", "logprobs"],
  "response.output_text.annotation.added": [...AT_PART, "annotation_index", "annotation"],
  "response.output_text.done": [...AT_PART, "text", "logprobs"],
  "response.refusal.delta": [...AT_PART, "delta"],
  "response.refusal.done": [...AT_PART, "refusal"],
  "response.content_part.done": [...AT_PART, "part"],
  "response.function_call_arguments.delta": [...AT_ITEM, "delta"],
  "response.function_call_arguments.done": [...AT_ITEM, "arguments", "name"],
  "response.custom_tool_call_input.delta": [...AT_ITEM, "delta"],
  "response.custom_tool_call_input.done": [...AT_ITEM, "input"],
  "response.reasoning_summary_part.added": [...AT_SUMMARY, "part"],
  "response.reasoning_summary_text.delta": [...AT_SUMMARY, "delta"],
  "response.reasoning_summary_text.done": [...AT_SUMMARY, "text"],
  "response.reasoning_summary_part.done": [...AT_SUMMARY, "part"],
  "response.reasoning_text.delta": [...AT_PART, "delta"],
  "response.reasoning_text.done": [...AT_PART, "text"],
  "response.output_item.done": ["output_index", "item"],
  "response.completed": ["response"],
  "response.incomplete": ["response"],
  "response.failed": ["response"],
  error: ["code", "message", "param"],
};
const HOSTED = /^response\.(web_search|file_search|code_interpreter|image_generation|mcp|shell)_/;
const TERMINAL = /^response\.(completed|incomplete|failed)$/;

class OrderCheck {
  readonly #problems: string[] = [];
  readonly #items: Item[] = [];
  #count = 0;
  #terminal: string | null = null;
  #hasError = false;
  #responseId: unknown = null;

  event(event: Json): void {
    const type = String(event["type"]);
    this.#expect(!this.#terminal, `${type} after ${this.#terminal}`);
    this.#expect(
      event["sequence_number"] === this.#count,
      `${type} has number ${String(event["sequence_number"])}, not ${this.#count}`,
    );
    this.#expect((this.#count === 0) === (type === "response.created"), `${type} is event ${this.#count}`);
    this.#expect(type !== "response.in_progress" || this.#count === 1, "response.in_progress is not second");
    this.#expect(!this.#hasError || type === "response.failed", `${type} after error`);
    const required = REQUIRED[type];
    if (!required && !HOSTED.test(type)) this.#problems.push(`${type} is no event that clients know`);
    for (const field of required ?? AT_ITEM) this.#expect(event[field] !== undefined, `${type} lacks ${field}`);
    this.#count += 1;
    if (type === "error") this.#hasError = true;
    else if ("response" in event) this.#lifecycle(type, event["response"] as Json);
    else if (type === "response.output_item.added") this.#added(event);
    else this.#inItem(type, event);
  }

  finish(): readonly string[] {
    this.#expect(this.#terminal !== null, "no terminal event");
    return this.#problems;
  }

  #expect(isSo: boolean, problem: string): void {
    if (!isSo) this.#problems.push(problem);
  }

  #lifecycle(type: string, response: Json): void {
    this.#responseId ??= response["id"];
    this.#expect(response["id"] === this.#responseId, `${type} names another response`);
    if (!TERMINAL.test(type)) {
      this.#expect(response["status"] === "in_progress", `${type} has status ${String(response["status"])}`);
      this.#expect(isDeepStrictEqual(response["output"], []), `${type} has output already`);
      return;
    }
    this.#terminal = type;
    const status = type.slice("response.".length);
    this.#expect(response["status"] === status, `${type} has status ${String(response["status"])}`);
    const output = response["output"] as Json[];
    if (status === "failed") {
      this.#expect(response["error"] !== null, "response.failed has no error");
      this.#expect(
        output.length === this.#items.length,
        `response.failed holds ${output.length} items, not ${this.#items.length}`,
      );
      return;
    }
    this.#expect(response["usage"] !== null, `${type} has no usage`);
    this.#items.forEach((item, index) => this.#expect(item.final !== null, `item ${index} is never done`));
    const told = this.#items.map(({ final }) => final);
    this.#expect(isDeepStrictEqual(output, told), `${type} holds other items than those that were done`);
    output.forEach((item, index) => {
      const mayBeCut = status === "incomplete" && index === output.length - 1;
      this.#expect(
        item["status"] !== "incomplete" || mayBeCut,
        `item ${index} of a response that is ${status} is incomplete`,
      );
    });
  }

  #added(event: Json): void {
    const item = event["item"] as Json;
    this.#expect(
      event["output_index"] === this.#items.length,
      `an item was added at ${String(event["output_index"])}, not ${this.#items.length}`,
    );
    this.#expect(
      item["status"] === undefined || item["status"] === "in_progress",
      `an item was added ${String(item["status"])}`,
    );
    const isEmpty = [item["content"] ?? [], item["summary"] ?? []].every((list) => isDeepStrictEqual(list, []));
    this.#expect(isEmpty && !item["arguments"] && !item["input"], "an item was added with what its deltas will say");
    this.#expect(!this.#items.some(({ id }) => id === item["id"]), `two items have the id ${String(item["id"])}`);
    this.#items.push({ id: item["id"], type: item["type"], parts: [], text: "", isTold: false, final: null });
  }

  #inItem(type: string, event: Json): void {
    const index = event["output_index"];
    const item = typeof index === "number" ? this.#items[index] : undefined;
    const id = type === "response.output_item.done" ? (event["item"] as Json)["id"] : event["item_id"];
    if (!item || item.final || item.id !== id) {
      this.#problems.push(`${type}: item ${String(id)} is not open at ${String(index)}`);
      return;
    }
    if (type === "response.output_item.done") return this.#done(item, event["item"] as Json);
    if (type.endsWith("_part.added")) return this.#partAdded(item, event);
    if (/function_call_arguments|custom_tool_call_input/.test(type)) return this.#called(item, type, event);
    if (HOSTED.test(type)) return;
    this.#inPart(item, type, event);
  }

  #partAdded(item: Item, event: Json): void {
    const place = event["content_index"] ?? event["summary_index"];
    const part = event["part"] as Json;
    this.#expect(place === item.parts.length, `a part was added at ${String(place)}, not ${item.parts.length}`);
    this.#expect((part["text"] ?? part["refusal"]) === "", "a part was added with what its deltas will say");
    this.#expect(
      item.parts.every(({ state }) => state === "done"),
      "a part was added while another was open",
    );
    item.parts.push({ kind: part["type"] as Part["kind"], text: "", deltas: 0, state: "open" });
  }

  #inPart(item: Item, type: string, event: Json): void {
    const place = (event["content_index"] ?? event["summary_index"]) as number;
    const part = item.parts[place];
    const kind = /\.(output_text|refusal|reasoning_text|reasoning_summary_text)\./
      .exec(type)?.[1]
      ?.replace("reasoning_summary", "summary");
    if (!part || part.state === "done" || (kind && kind !== part.kind)) {
      this.#problems.push(`${type}: no such part is open`);
      return;
    }
    if (type.endsWith(".delta")) {
      this.#expect(part.state === "open", `${type} after the text was told whole`);
      part.text += String(event["delta"]);
      part.deltas += 1;
    } else if (type.endsWith("_part.done")) {
      const told = event["part"] as Json;
      this.#expect(part.state === "told", `${type} before the text was told whole`);
      this.#expect((told["text"] ?? told["refusal"]) === part.text, `${type} differs from the deltas`);
      part.state = "done";
    } else if (type.endsWith(".done")) {
      this.#expect(part.state === "open", `${type} twice`);
      this.#expect(part.deltas > 0, `${type} without a delta`);
      this.#expect((event["text"] ?? event["refusal"]) === part.text, `${type} differs from the deltas`);
      part.state = "told";
    }
  }

  #called(item: Item, type: string, event: Json): void {
    this.#expect(!item.isTold, `${type} after the call was told whole`);
    if (type.endsWith(".delta")) {
      item.text += String(event["delta"]);
      return;
    }
    item.isTold = true;
    this.#expect((event["arguments"] ?? event["input"]) === item.text, `${type} differs from the deltas`);
  }

  #done(item: Item, final: Json): void {
    item.final = final;
    this.#expect(
      item.parts.every(({ state }) => state === "done"),
      "an item is done before its parts are",
    );
    const isCall = item.type === "function_call" || item.type === "custom_tool_call";
    this.#expect(!isCall || item.isTold, "a call is done before its arguments are");
    if (isCall)
      this.#expect(
        (final["arguments"] ?? final["input"]) === item.text,
        "a call is done with other arguments than its deltas",
      );
    const parts = [
      ...((final["summary"] as Json[] | undefined) ?? []),
      ...((final["content"] as Json[] | undefined) ?? []),
    ];
    const texts = parts.map((part) => part["text"] ?? part["refusal"]);
    this.#expect(
      isDeepStrictEqual(
        texts,
        item.parts.map(({ text }) => text),
      ),
      "an item is done with other parts than its events told",
    );
    this.#expect(
      final["status"] === "completed" || final["status"] === "incomplete",
      `an item is done with status ${String(final["status"])}`,
    );
  }
}
