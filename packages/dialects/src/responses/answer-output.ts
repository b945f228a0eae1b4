import { DomainError } from "@fairlead/protocol/errors";
import type { ResponseOutputItem } from "openai/resources/responses/responses";
import type { AnswerPiece, ChatCallPiece } from "../chat/chat-chunk.ts";
import type { ToolNames } from "../chat/tool-names.ts";
import type { AnswerIds } from "../convert/bridge-call.ts";
import type { Emit } from "../convert/wire.ts";
import { toResponseAnnotations } from "./annotations.ts";
import { type CallItem, CustomCallItem, FunctionCallItem } from "./call-item.ts";
import { MessageItem } from "./message-item.ts";
import type { FinalStatus, OutputItem, Place } from "./output-item.ts";
import { ThinkingItem } from "./thinking-item.ts";

interface Setting {
  readonly ids: AnswerIds;
  readonly tools: ToolNames;
  readonly emit: Emit;
}

interface Call {
  readonly index: number | null;
  id: string;
  /** Buffered until the name arrives. */
  waiting: string;
  item: CallItem | null;
}

/** Maximum characters of a response, to bound memory. */
const LONGEST_OUTPUT = 32 * 1024 * 1024;
const MOST_ITEMS = 1024;

/** Builds the output items of a response from chat completion pieces. Items get their index when they are added. */
export class AnswerOutput {
  readonly #setting: Setting;
  readonly #items: OutputItem[] = [];
  readonly #calls: Call[] = [];
  readonly #callIds = new Set<string>();
  /** The item that receives text or reasoning. */
  #open: ThinkingItem | MessageItem | null = null;
  #length = 0;

  constructor(setting: Setting) {
    this.#setting = setting;
  }

  /** @throws DomainError `upstream_failed` for an endless response. */
  add(piece: AnswerPiece): void {
    this.#measure(piece);
    if (piece.thinking !== "") this.#thinking().add(piece.thinking);
    if (piece.text !== null && (piece.text !== "" || piece.logprobs.length > 0)) {
      this.#message().text(piece.text, piece.logprobs);
    }
    if (this.#open instanceof MessageItem) this.#open.annotate(toResponseAnnotations(piece.annotations));
    if (piece.refusal !== "") this.#message().refusal(piece.refusal);
    for (const call of piece.calls) this.#call(call);
  }

  /** @throws DomainError `upstream_failed` for a call without a name. */
  close(status: FinalStatus): void {
    if (this.#calls.some(({ item, id, waiting }) => !item && id + waiting !== "")) {
      throw new DomainError("upstream_failed", "The upstream sent a tool call without a name.");
    }
    // Agents retry empty responses.
    const isEmpty = this.#items.every((item) => item instanceof ThinkingItem);
    if (status === "completed" && isEmpty) this.#message().text("", []);
    this.#items.forEach((item, index) => item.close(this.#statusAt(index, status)));
  }

  view(status: FinalStatus): ResponseOutputItem[] {
    return this.#items.map((item, index) => item.view(this.#statusAt(index, status)));
  }

  /** A truncated response has a truncated last item. */
  #statusAt(index: number, status: FinalStatus): FinalStatus {
    return index === this.#items.length - 1 ? status : "completed";
  }

  #thinking(): ThinkingItem {
    if (this.#open instanceof ThinkingItem) return this.#open;
    const item = this.#next("rs", (place) => new ThinkingItem(place));
    this.#open = item;
    return item;
  }

  #message(): MessageItem {
    if (this.#open instanceof MessageItem) return this.#open;
    const item = this.#next("msg", (place) => new MessageItem(place));
    this.#open = item;
    return item;
  }

  #next<T extends OutputItem>(kind: "rs" | "msg" | "fc" | "ctc", make: (place: Place) => T): T {
    this.#open?.close("completed");
    this.#open = null;
    const index = this.#items.length;
    const item = make({ id: this.#setting.ids.item(kind, index), index, emit: this.#setting.emit });
    this.#items.push(item);
    return item;
  }

  #call(piece: ChatCallPiece): void {
    const call = this.#find(piece) ?? this.#begin(piece);
    call.id ||= piece.id;
    if (call.item) return call.item.add(piece.arguments);
    call.waiting += piece.arguments;
    if (piece.name === "") return;
    call.item = this.#name(call, piece.name);
    call.item.add(call.waiting);
    call.waiting = "";
  }

  /**
   * Finds the call of a piece: by index, otherwise by id (openai/openai-python#2806), otherwise the latest. Some upstreams use the same index
   * for every call: a new id with a name then starts a new call.
   */
  #find({ index, id, name }: ChatCallPiece): Call | undefined {
    const isOther = (call: Call): boolean => id !== "" && name !== "" && call.id !== "" && call.id !== id;
    if (index !== null) return this.#calls.findLast((call) => call.index === index && !isOther(call));
    if (id !== "") return this.#calls.find((call) => call.id === id) ?? (name === "" ? this.#calls.at(-1) : undefined);
    return name === "" ? this.#calls.at(-1) : undefined;
  }

  #begin({ index, id }: ChatCallPiece): Call {
    const call = { index, id, waiting: "", item: null };
    this.#calls.push(call);
    return call;
  }

  #name(call: Call, name: string): CallItem {
    const origin = this.#setting.tools.origin(name);
    // Results are matched to calls by this id, so it must exist and be unique.
    const isUsable = call.id !== "" && !this.#callIds.has(call.id);
    const callId = isUsable ? call.id : this.#setting.ids.item("call", this.#items.length);
    this.#callIds.add(callId);
    return origin.kind === "custom"
      ? this.#next("ctc", (place) => new CustomCallItem(place, callId, origin))
      : this.#next("fc", (place) => new FunctionCallItem(place, callId, origin));
  }

  #measure({ text, thinking, refusal, calls }: AnswerPiece): void {
    this.#length += (text?.length ?? 0) + thinking.length + refusal.length;
    for (const call of calls) this.#length += call.arguments.length;
    if (this.#length <= LONGEST_OUTPUT && this.#items.length <= MOST_ITEMS && this.#calls.length <= MOST_ITEMS) return;
    throw new DomainError("upstream_failed", "The upstream's response is too long to convert.");
  }
}
