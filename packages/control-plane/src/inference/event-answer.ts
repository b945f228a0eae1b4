import type { DomainError } from "@fairlead/protocol/errors";
import type { Dialect } from "./dialect.ts";
import { EventReader } from "./event-reader.ts";
import { type EventSink, EventSplitter, eventEnds } from "./event-splitter.ts";
import { MemberReader } from "./member-reader.ts";
import { isNotable, READ_MEMBERS } from "./notable-events.ts";
import { OutputMeter } from "./output-meter.ts";
import { brokeOff, type RelayedAnswer, type Send } from "./relayed-answer.ts";
import { failureEvents, type ResponseHead } from "./stream-failure.ts";
import { readUsage, type TokenUsage } from "./token-usage.ts";
import { failureIn } from "./upstream-words.ts";

export interface EventAnswerOptions {
  readonly dialect: Dialect;
  /** Whether the chunk that tells the usage was asked for by us alone, and is kept from the caller. */
  readonly hidesUsage: boolean;
  readonly requestId: string;
  /** As the caller named it. */
  readonly model: string;
  /** Unix seconds. */
  readonly createdAt: number;
  /** Monotonic milliseconds. */
  readonly now: () => number;
}

const SEQUENCE = Buffer.from('"sequence_number":');
const LONGEST_NUMBER = 16;

/**
 * An answer that comes as events. A healthy one goes on byte by byte as it came, but for the chunk that tells a usage which the
 * caller did not ask for; it is looked into only where something may stand that matters (design §8, §13).
 */
export class EventAnswer implements RelayedAnswer, EventSink {
  readonly #send: Send;
  readonly #options: EventAnswerOptions;
  readonly #splitter = new EventSplitter(this);
  readonly #meter: OutputMeter;
  #usage: TokenUsage | null = null;
  #sent = false;
  /** The upstream said that its answer is whole. */
  #finished = false;
  #failed = false;
  #fault: DomainError | null = null;
  /** Reads an event that comes in pieces. */
  #reader: EventReader | null = null;
  #sequence = -1;
  #response: ResponseHead | null = null;
  #looksForHead: boolean;

  constructor(send: Send, options: EventAnswerOptions) {
    this.#send = send;
    this.#options = options;
    this.#meter = new OutputMeter(options.dialect, options.now);
    this.#looksForHead = options.dialect === "responses";
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
    return this.#splitter.isBetween;
  }

  push(chunk: Buffer): DomainError | null {
    this.#splitter.push(chunk);
    return this.#fault;
  }

  end(): DomainError | null {
    const rest = this.#splitter.takeRest();
    if (rest.length > 0) this.#takeRest(rest);
    if (this.#fault !== null) return this.#fault;
    if (this.#finished) return null;
    // In the chat dialect, the error that was passed on is the end.
    return this.#failed && this.#options.dialect === "chat" ? null : brokeOff();
  }

  fail(error: DomainError): boolean {
    // An event glued to a half line would be lost with it.
    const gap = this.#splitter.isBetween ? "" : "\n\n";
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
    if (events !== "") this.#send(Buffer.from(gap + events));
    return true;
  }

  onEvents(bytes: Buffer): void {
    if (this.#fault !== null) return;
    this.#meter.push(bytes);
    const { dialect } = this.#options;
    if (dialect === "responses") this.#readSequence(bytes);
    if (!this.#looksForHead && !isNotable(dialect, bytes)) {
      this.#pass(bytes);
      return;
    }
    let passed = 0;
    let start = 0;
    for (const end of eventEnds(bytes)) {
      if (!this.#takes(bytes.subarray(start, end), start === passed)) {
        this.#pass(bytes.subarray(passed, start));
        passed = end;
      }
      start = end;
    }
    this.#pass(bytes.subarray(passed));
  }

  onPiece(bytes: Buffer, last: boolean): void {
    if (this.#fault !== null) return;
    this.#reader ??= this.#newReader();
    this.#reader.push(bytes);
    if (this.#options.dialect === "responses") this.#readSequence(bytes);
    this.#pass(bytes);
    if (!last) return;
    this.#look(this.#reader, false);
    this.#reader = null;
  }

  #newReader(): EventReader {
    return new EventReader(READ_MEMBERS[this.#options.dialect]);
  }

  #pass(bytes: Buffer): void {
    if (bytes.length > 0 && this.#send(bytes)) this.#sent = true;
  }

  /** @returns whether the event is the caller's. @param next whether nothing waits to be sent before it. */
  #takes(event: Buffer, next: boolean): boolean {
    if (this.#fault !== null) return false;
    const reader = this.#newReader();
    reader.push(event);
    return this.#look(reader, next && !this.#sent);
  }

  /** A stream without its last empty line, or an error that is no event at all. */
  #takeRest(rest: Buffer): void {
    const members = new MemberReader(["error"]);
    members.push(rest);
    const failure = failureIn(members.value("error"));
    if (failure !== null) {
      this.#fault = failure.error;
      return;
    }
    if (this.#takes(rest, true) && (this.#finished || this.#failed)) this.#pass(rest);
  }

  /** @param first whether the caller has seen nothing yet. */
  #look(reader: EventReader, first: boolean): boolean {
    const { members } = reader;
    const failure = failureIn(errorOf(reader));
    if (failure !== null) {
      // Where nothing was sent it can still be told with a status, or another upstream be asked.
      if (first || !failure.tellable) {
        this.#fault = failure.error;
        return false;
      }
      this.#failed = true;
    }
    return this.#options.dialect === "chat" ? this.#lookAtChunk(reader) : this.#lookAtEvent(members);
  }

  #lookAtChunk({ isDone, members }: EventReader): boolean {
    if (isDone) {
      this.#finished = true;
      // After an error it would say that all is well.
      return !this.#failed;
    }
    const usage = members.value("usage");
    if (usage === undefined || usage === null) return true;
    this.#usage = readUsage("chat", usage) ?? this.#usage;
    const hasChoices =
      (members.text("choices") ?? "[]").replaceAll(/\s/g, "") !== "[]" || members.text("choices") === null;
    return hasChoices || !this.#options.hidesUsage;
  }

  #lookAtEvent(members: MemberReader): boolean {
    const type = members.value("type");
    this.#usage = readUsage("responses", members.value("response.usage")) ?? this.#usage;
    if (type === "response.completed" || type === "response.incomplete" || type === "response.failed") {
      this.#finished = true;
      if (type === "response.failed") this.#failed = true;
    }
    this.#response ??= headOf(members);
    this.#looksForHead = false;
    return true;
  }

  /** The number of the last event in these bytes. Upstreams leave it out, too. */
  #readSequence(bytes: Buffer): void {
    const at = bytes.lastIndexOf(SEQUENCE);
    if (at === -1) return;
    const start = at + SEQUENCE.length;
    const digits = /^\s*(\d+)/.exec(bytes.toString("latin1", start, start + LONGEST_NUMBER))?.[1];
    if (digits !== undefined) this.#sequence = Number(digits);
  }
}

function headOf(members: MemberReader): ResponseHead | null {
  const [id, model, createdAt] = ["response.id", "response.model", "response.created_at"].map((path) =>
    members.value(path),
  );
  if (typeof id !== "string") return null;
  return {
    id,
    model: typeof model === "string" ? model : "",
    createdAt: typeof createdAt === "number" ? createdAt : 0,
  };
}

/** @returns what an event tells of an error, in any of the forms in use. */
function errorOf({ name, members }: EventReader): unknown {
  const error = members.value("error");
  if (error) return error;
  if (name !== "error" && members.value("type") !== "error") return null;
  return { message: members.value("message"), code: members.value("code") };
}
