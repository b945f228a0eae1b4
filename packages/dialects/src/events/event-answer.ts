import type { DomainError } from "@fairlead/protocol/errors";
import type { Dialect } from "../calls/dialect.ts";
import { OutputMeter } from "../calls/output-meter.ts";
import { noResponse, type RelayedAnswer, type Send, upstreamBrokeOff } from "../calls/relayed-answer.ts";
import { readUsage, type TokenUsage } from "../calls/token-usage.ts";
import { failureIn } from "../calls/upstream-failure.ts";
import type { EventFacts, EventSpec } from "../dialect-spec.ts";
import { DIALECT_SPECS } from "../dialect-specs.ts";
import { BoundedBytes, type HoldBytes } from "../json/bounded-bytes.ts";
import { MemberReader } from "../json/member-reader.ts";
import { type AnswerEvent, readAnswerEvent, readAnswerEvents } from "./answer-event.ts";
import { EventReader } from "./event-reader.ts";
import { type EventSink, EventSplitter, eventEnds } from "./event-splitter.ts";
import { failureEvents, type ResponseIdentity } from "./stream-failure.ts";

export interface EventAnswerOptions {
  readonly dialect: Dialect;
  /** Whether only we requested the usage chunk, which is then hidden from the caller. */
  readonly hidesUsage: boolean;
  readonly requestId: string;
  /** As the caller named it. */
  readonly model: string;
  /** Unix seconds. */
  readonly createdAt: number;
  /** Monotonic milliseconds. */
  readonly now: () => number;
}

/** Shorter data contains nothing relevant. */
const LEAST_EVENT_BYTES = "data:[DONE]".length;
const EVENT_END = Buffer.from("\n\n");
const SEQUENCE = Buffer.from('"sequence_number":');
const LONGEST_NUMBER = 16;
/** The start of a web page, not of an event. */
const LESS_THAN = 0x3c;

/** Relays a stream byte by byte, except for a usage chunk that the caller did not request. Only events that may matter are inspected. */
export class EventAnswer implements RelayedAnswer, EventSink {
  readonly #send: Send;
  readonly #options: EventAnswerOptions;
  readonly #events: EventSpec;
  readonly #splitter = new EventSplitter(this);
  readonly #meter: OutputMeter;
  /** Collects an event that comes in pieces, for a sink that reads events; null: the pieces are passed on. */
  readonly #pieces: BoundedBytes | null;
  #usage: TokenUsage | null = null;
  #sent = false;
  /** The upstream reported that its response is complete. */
  #finished = false;
  #failed = false;
  #fault: DomainError | null = null;
  /** For events that arrive in pieces. */
  #reader: EventReader | null = null;
  #sequence = -1;
  #response: ResponseIdentity | null = null;
  #looksForHead: boolean;

  /** @param hold memory for long events, where the caller's sink reads events; null: it takes bytes. */
  constructor(send: Send, options: EventAnswerOptions, hold: HoldBytes | null = null) {
    this.#send = send;
    this.#pieces = hold && new BoundedBytes(hold);
    this.#options = options;
    this.#meter = new OutputMeter(options.dialect, options.now);
    this.#events = DIALECT_SPECS[options.dialect].events;
    this.#looksForHead = this.#events.hasHead;
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
    return this.#failed;
  }

  get finished(): boolean {
    return this.#finished;
  }

  get canComment(): boolean {
    return this.#pieces !== null || this.#splitter.isBetween;
  }

  push(chunk: Buffer): DomainError | null {
    this.#splitter.push(chunk);
    return this.#fault;
  }

  end(): DomainError | null {
    const rest = this.#splitter.takeRest();
    const pieces = this.#pieces?.take();
    const whole = pieces ? Buffer.concat([pieces, rest]) : rest;
    if (whole.length > 0) this.#takeRest(whole);
    if (this.#fault !== null) return this.#fault;
    if (this.#finished) return null;
    if (!(this.#sent || this.#failed)) return noResponse("ended the stream before its first event");
    return this.#failed && this.#events.errorEnds ? null : upstreamBrokeOff();
  }

  fail(error: DomainError): boolean {
    // An event glued to a half line would be lost with it.
    const gap = this.canComment ? "" : "\n\n";
    const events = failureEvents(
      {
        ...this.#options,
        begun: this.#sent,
        errorTold: this.#failed,
        sequence: this.#sequence,
        response: this.#response,
      },
      error,
    );
    if (events === "") return true;
    const bytes = Buffer.from(gap + events);
    this.#send(bytes, this.#pieces ? readAnswerEvents(bytes) : undefined);
    return true;
  }

  onEvents(bytes: Buffer): void {
    if (this.#fault === null && !this.#sent && bytes[0] === LESS_THAN)
      this.#fault = noResponse("returned a web page instead of events");
    if (this.#fault !== null) return;
    this.#meter.push(bytes);
    if (this.#events.numbered) this.#readSequence(bytes);
    const looks = this.#looksForHead || this.#events.isNotable(bytes);
    if (this.#pieces !== null) this.#passEvents(bytes, looks);
    else if (looks) this.#passLooking(bytes);
    else this.#pass(bytes);
  }

  /** To a sink that reads events. */
  #passEvents(bytes: Buffer, looks: boolean): void {
    const events: AnswerEvent[] = [];
    for (const event of readAnswerEvents(bytes)) {
      const isShort = event.bytes.length < LEAST_EVENT_BYTES;
      if (!looks || isShort || this.#takes(event.bytes, events.length === 0)) events.push(event);
    }
    if (events.length > 0) this.#pass(bytes, events);
  }

  #passLooking(bytes: Buffer): void {
    let passed = 0;
    let start = 0;
    for (const end of eventEnds(bytes)) {
      // Creating a reader for each of thousands of comments would block the server.
      if (end - start >= LEAST_EVENT_BYTES && !this.#takes(bytes.subarray(start, end), start === passed)) {
        this.#pass(bytes.subarray(passed, start));
        passed = end;
      }
      start = end;
    }
    this.#pass(bytes.subarray(passed));
  }

  onPiece(bytes: Buffer, last: boolean): void {
    if (this.#fault !== null) return;
    if (this.#pieces !== null) {
      this.#fault = this.#pieces.add(bytes);
      if (this.#fault === null && last) this.onEvents(this.#pieces.take());
      return;
    }
    this.#reader ??= this.#newReader();
    this.#reader.push(bytes);
    if (this.#events.numbered) this.#readSequence(bytes);
    this.#pass(bytes);
    if (!last) return;
    this.#look(this.#reader, false);
    this.#reader = null;
  }

  #newReader(): EventReader {
    return new EventReader(this.#events.members);
  }

  #pass(bytes: Buffer, events?: readonly AnswerEvent[]): void {
    if (bytes.length > 0 && this.#send(bytes, events)) this.#sent = true;
  }

  /** @returns whether the event goes to the caller. @param next whether nothing is queued before it. */
  #takes(event: Buffer, next: boolean): boolean {
    if (this.#fault !== null) return false;
    const reader = this.#newReader();
    reader.push(event);
    return this.#look(reader, next && !this.#sent);
  }

  /** A stream without its last empty line, or an error that is not an event. */
  #takeRest(rest: Buffer): void {
    const members = new MemberReader(["error"]);
    members.push(rest);
    const failure = failureIn(members.value("error"));
    if (failure !== null) {
      this.#fault = failure.error;
      return;
    }
    if (!this.#takes(rest, true) || !(this.#finished || this.#failed)) return;
    const event = this.#pieces ? [readAnswerEvent(Buffer.concat([rest, EVENT_END]))] : undefined;
    this.#pass(rest, event);
  }

  /** @param first whether nothing was sent yet. */
  #look(reader: EventReader, first: boolean): boolean {
    const failure = failureIn(errorOf(reader));
    if (failure !== null) {
      // Before anything was sent, the failure can still set the status, or another upstream be tried.
      if (first || !failure.tellable) {
        this.#fault = failure.error;
        return false;
      }
      this.#failed = true;
    }
    return this.#take(this.#events.read(reader));
  }

  /** @returns whether the event is the caller's. */
  #take({ usage, onlyUsage, end, head }: EventFacts): boolean {
    if (usage !== undefined && usage !== null) this.#usage = readUsage(this.#options.dialect, usage) ?? this.#usage;
    if (end) this.#finished = true;
    if (end === "failed") this.#failed = true;
    this.#response ??= head ?? null;
    this.#looksForHead = false;
    // After an error `[DONE]` would say that all is well.
    if (end === "done") return !this.#failed;
    return !(onlyUsage === true && this.#options.hidesUsage);
  }

  /** Records the last sequence number in these bytes. Upstreams may omit it. */
  #readSequence(bytes: Buffer): void {
    const at = bytes.lastIndexOf(SEQUENCE);
    if (at === -1) return;
    const start = at + SEQUENCE.length;
    const digits = /^\s*(\d+)/.exec(bytes.toString("latin1", start, start + LONGEST_NUMBER))?.[1];
    if (digits !== undefined) this.#sequence = Number(digits);
  }
}

/** @returns the error in an event, in any of the forms in use. */
function errorOf({ name, members }: EventReader): unknown {
  const error = members.value("error");
  if (error) return error;
  if (name !== "error" && members.value("type") !== "error") return null;
  return { message: members.value("message"), code: members.value("code") };
}
