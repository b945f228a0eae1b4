import { DomainError } from "@fairlead/protocol/errors";
import type { Dialect } from "../calls/dialect.ts";
import { OutputMeter } from "../calls/output-meter.ts";
import type { RelayedAnswer, Send } from "../calls/relayed-answer.ts";
import { readUsage, type TokenUsage } from "../calls/token-usage.ts";
import { failureIn } from "../calls/upstream-failure.ts";
import type { Conversion, ConvertedStream } from "../convert/conversion.ts";
import { DIALECT_SPECS } from "../dialect-specs.ts";
import { BoundedBytes, type HoldBytes } from "../json/bounded-bytes.ts";
import { jsonOr } from "../json/json-or.ts";
import { isObject } from "../json/parse.ts";
import { type AnswerEvent, isDone } from "./answer-event.ts";
import { type EventData, eventData } from "./event-data.ts";
import { type EventSink, EventSplitter, eventEnds } from "./event-splitter.ts";
import { framesOf, type MadeEvent } from "./sse.ts";

export interface BridgedEventsOptions {
  readonly conversion: Conversion;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly hold: HoldBytes;
  readonly readsEvents: boolean;
}

/** A response that arrives as events of another dialect; each is converted once complete. */
export class BridgedEvents implements RelayedAnswer, EventSink {
  readonly canComment = true;
  readonly #send: Send;
  readonly #readsEvents: boolean;
  readonly #dialect: Dialect;
  readonly #stream: ConvertedStream;
  readonly #splitter = new EventSplitter(this);
  readonly #meter: OutputMeter;
  /** For an event too long for the splitter: the last event of a response contains the whole response. */
  readonly #pieces: BoundedBytes;
  #usage: TokenUsage | null = null;
  #fault: DomainError | null = null;
  /** Converted from received bytes, not sent yet. */
  #made: MadeEvent[] = [];
  #withheld: readonly MadeEvent[] = [];
  #sent = false;

  constructor(send: Send, { conversion, now, hold, readsEvents }: BridgedEventsOptions) {
    this.#send = send;
    this.#readsEvents = readsEvents;
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
    this.#made.push(...this.#withheld, ...this.#stream.fail(error));
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

  #takeEvent({ name, data }: EventData, parsed?: unknown): void {
    if (this.#fault !== null || this.#stream.ended || data === null || data.trim() === "") return;
    if (isDone(data)) {
      // At the very start, it does not mean the end.
      if (DIALECT_SPECS[this.#dialect].events.doneEnds && !this.#isFirst) this.#add(this.#stream.end());
      return;
    }
    const value = parsed ?? jsonOr(data, undefined);
    if (value === undefined) {
      this.#fault = new DomainError("upstream_failed", "The upstream sent an event that is not JSON.");
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
    if (this.#withheld.length > 0) this.#fault = this.#failure();
  }

  /** A stream without its last empty line, or an error that is not an event; half an event is ignored. */
  #takeRest(rest: string): void {
    if (rest === "") return;
    const event = rest.trimStart().startsWith("{") ? { name: "", data: rest } : eventData(rest);
    const parsed = jsonOr(event.data ?? "", undefined);
    if (isDone(event.data ?? "") || parsed !== undefined) this.#takeEvent(event, parsed);
  }

  get #isFirst(): boolean {
    return !this.#sent && this.#made.length === 0;
  }

  #failure(): DomainError | null {
    const { failure } = this.#stream;
    return failure === null ? null : new DomainError("upstream_failed", failure);
  }

  /** A failure before the client has received anything can still set the status, or another upstream be tried. */
  #add(made: readonly MadeEvent[]): void {
    if (this.failed && this.#isFirst) this.#withheld = made;
    else this.#made.push(...made);
  }

  #flush(): void {
    if (this.#made.length === 0) return;
    const made = this.#made;
    this.#made = [];
    const bytes = Buffer.from(framesOf(made));
    if (this.#send(bytes, this.#readsEvents ? toEvents(made, bytes) : undefined)) this.#sent = true;
  }
}

/** @param bytes of all their frames. */
function toEvents(made: readonly MadeEvent[], bytes: Buffer): AnswerEvent[] {
  let start = 0;
  return made.map(({ frame, value }) => {
    const end = start + Buffer.byteLength(frame);
    const event = { bytes: bytes.subarray(start, end), value, isDone: value === null };
    start = end;
    return event;
  });
}

/** The event's name alone may mark it as an error. */
function asError(value: unknown): unknown {
  return isObject(value) && (value["error"] || value["type"] === "error") ? value : { error: value };
}

/** @returns the error in an event, in any of the forms in use. */
function errorOf(value: unknown): unknown {
  if (!isObject(value)) return null;
  if (value["error"]) return value["error"];
  if (value["type"] === "error") return value;
  return value["type"] === "response.failed" && isObject(value["response"]) ? value["response"]["error"] : null;
}

/** @param value a chunk, an event, or a complete response. */
function usageOf(value: unknown): unknown {
  if (!isObject(value)) return undefined;
  return isObject(value["response"]) ? value["response"]["usage"] : value["usage"];
}
