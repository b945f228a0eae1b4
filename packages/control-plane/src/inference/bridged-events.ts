import { DomainError } from "@fairlead/protocol/errors";
import { BoundedBytes, type HoldBytes } from "./bounded-bytes.ts";
import type { Conversion, ConvertedStream } from "./bridge/conversion.ts";
import { isObject } from "./bridge/parse.ts";
import type { Dialect } from "./dialect.ts";
import { type EventData, eventData } from "./event-data.ts";
import { type EventSink, EventSplitter, eventEnds } from "./event-splitter.ts";
import { jsonOr } from "./json-or.ts";
import { OutputMeter } from "./output-meter.ts";
import type { RelayedAnswer, Send } from "./relayed-answer.ts";
import { readUsage, type TokenUsage } from "./token-usage.ts";
import { failureIn } from "./upstream-words.ts";

/** The end that the chat dialect has; upstreams of the other one send it too. */
const DONE = "[DONE]";

export interface BridgedEventsOptions {
  readonly conversion: Conversion;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly hold: HoldBytes;
}

/** An answer that comes as events of the other dialect: each is converted as soon as it is whole. */
export class BridgedEvents implements RelayedAnswer, EventSink {
  readonly canComment = true;
  readonly #send: Send;
  readonly #dialect: Dialect;
  readonly #stream: ConvertedStream;
  readonly #splitter = new EventSplitter(this);
  readonly #meter: OutputMeter;
  /** Of an event that is too long for the splitter: the last one of a response holds all of its answer. */
  readonly #pieces: BoundedBytes;
  #usage: TokenUsage | null = null;
  #fault: DomainError | null = null;
  /** Made of the bytes at hand, and not sent yet. */
  #frames = "";
  #withheld = "";
  #sent = false;

  constructor(send: Send, { conversion, now, hold }: BridgedEventsOptions) {
    this.#send = send;
    this.#pieces = new BoundedBytes(hold);
    this.#dialect = conversion.dialect;
    this.#stream = conversion.stream();
    this.#meter = new OutputMeter(conversion.dialect, now);
  }

  get usage(): TokenUsage | null {
    return this.#usage;
  }

  get outputTokens(): number {
    return this.#meter.tokens;
  }

  get firstTokenAt(): number | null {
    return this.#meter.firstTokenAt;
  }

  get failed(): boolean {
    return this.#stream.failure !== null;
  }

  get finished(): boolean {
    return this.#stream.ended && !this.failed;
  }

  push(chunk: Buffer): DomainError | null {
    this.#splitter.push(chunk);
    this.#flush();
    return this.#fault;
  }

  end(): DomainError | null {
    this.#takeRest(Buffer.concat([this.#pieces.take(), this.#splitter.takeRest()]).toString("utf8"));
    if (this.#fault !== null) return this.#fault;
    const isTold = this.failed;
    this.#add(this.#stream.end());
    this.#flush();
    return isTold ? null : this.#failure();
  }

  fail(error: DomainError): boolean {
    this.#frames += this.#withheld + this.#stream.fail(error);
    this.#flush();
    return true;
  }

  onEvents(bytes: Buffer): void {
    this.#meter.push(bytes);
    let start = 0;
    for (const end of eventEnds(bytes)) {
      this.#takeEvent(eventData(bytes.toString("utf8", start, end)));
      start = end;
    }
  }

  onPiece(bytes: Buffer, last: boolean): void {
    const fault = this.#pieces.add(bytes);
    if (fault !== null) this.#fault ??= fault;
    else if (last) this.onEvents(this.#pieces.take());
  }

  #takeEvent({ name, data }: EventData): void {
    if (this.#fault !== null || this.#stream.ended || data === null || data.trim() === "") return;
    if (isDone(data)) {
      // Of a response it is no end, and of nothing neither.
      if (this.#dialect === "chat" && !this.#isFirst) this.#add(this.#stream.end());
      return;
    }
    const value = jsonOr(data, undefined);
    if (value === undefined) {
      this.#fault = new DomainError("upstream_failed", "The upstream sent an event that is no JSON.");
    } else {
      this.#take(name === "error" ? asError(value) : value);
    }
  }

  #take(value: unknown): void {
    const failure = failureIn(errorOf(value));
    if (failure !== null && (this.#isFirst || !failure.tellable)) {
      this.#fault = failure.error;
      return;
    }
    this.#usage = readUsage(this.#dialect, usageOf(value)) ?? this.#usage;
    this.#add(this.#stream.push(value));
    if (this.#withheld !== "") this.#fault = this.#failure();
  }

  /** A stream without its last empty line, or an error that is no event at all; half an event says nothing. */
  #takeRest(rest: string): void {
    const event = rest.trimStart().startsWith("{") ? { name: "", data: rest } : eventData(rest);
    if (isDone(event.data ?? "") || jsonOr(event.data ?? "", undefined) !== undefined) this.#takeEvent(event);
  }

  get #isFirst(): boolean {
    return !this.#sent && this.#frames === "";
  }

  #failure(): DomainError | null {
    const { failure } = this.#stream;
    return failure === null ? null : new DomainError("upstream_failed", failure);
  }

  /** A failure that nobody has seen anything before can still be told with a status, or another upstream be asked. */
  #add(frames: string): void {
    if (this.failed && this.#isFirst) this.#withheld = frames;
    else this.#frames += frames;
  }

  #flush(): void {
    if (this.#frames === "") return;
    const frames = Buffer.from(this.#frames);
    this.#frames = "";
    if (this.#send(frames)) this.#sent = true;
  }
}

const isDone = (data: string): boolean => data.trim() === DONE;

/** In the chat dialect the event's name alone may say that this is one. */
function asError(value: unknown): unknown {
  return isObject(value) && (value["error"] || value["type"] === "error") ? value : { error: value };
}

/** @returns what an event tells of an error, in any of the forms in use. */
function errorOf(value: unknown): unknown {
  if (!isObject(value)) return null;
  if (value["error"]) return value["error"];
  if (value["type"] === "error") return value;
  return value["type"] === "response.failed" && isObject(value["response"]) ? value["response"]["error"] : null;
}

/** @param value a chunk, an event, or a whole answer. */
function usageOf(value: unknown): unknown {
  if (!isObject(value)) return undefined;
  return isObject(value["response"]) ? value["response"]["usage"] : value["usage"];
}
