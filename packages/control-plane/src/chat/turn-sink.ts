import type { OutgoingHttpHeaders } from "node:http";
import type { DomainError } from "@fairlead/protocol/errors";
import type { AnswerHead, AnswerSink, SinkListener } from "../inference/answer-sink.ts";
import { BoundedBytes, type HoldBytes } from "../inference/bounded-bytes.ts";
import { eventData } from "../inference/event-data.ts";
import { type EventSink, EventSplitter, eventEnds } from "../inference/event-splitter.ts";
import { jsonOr } from "../inference/json-or.ts";
import { EVENT_STREAM_TYPE, MAX_CONVERTED_BYTES, tooLong } from "../inference/relayed-answer.ts";
import type { AnswerReader } from "./answer-reader.ts";

/** Who listens to a turn's answer: its caller's connection, as far as there is one. */
export interface Audience {
  /** Headers that the answer bears in any case. Before anything else. */
  carry(headers: Readonly<Record<string, string>>): void;
  /** @param onDrain told when a caller who did not keep up does again. */
  listen(onDrain: () => void): void;
  /** Whether the answer goes out as it comes; otherwise nothing is said before its end. */
  readonly streams: boolean;
  begin(headers: OutgoingHttpHeaders): void;
  /** @returns false when the caller does not keep up. */
  write(bytes: Buffer): boolean;
  end(): void;
  /** Breaks the connection off. */
  break(): void;
}

/** An upstream's refusal, with its own words. */
export interface Rejection {
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
  readonly body: Buffer;
}

export interface TurnSinkOptions {
  readonly reader: AnswerReader;
  readonly audience: Audience;
  /** For what is read of the answer until it is stored. */
  readonly hold: HoldBytes;
  /** Told when there is more of the answer. */
  readonly onProgress: () => void;
}

/** Why an answer ended before its upstream had finished it. */
export type CutBy = "client_left" | "stopped";

/**
 * Stands between the pipeline and the caller of a turn: reads the answer while it goes out, and keeps back its end, which
 * nobody may see before it is stored (design §7).
 */
export class TurnSink implements AnswerSink, EventSink {
  readonly connection = null;
  readonly #reader: AnswerReader;
  readonly #audience: Audience;
  readonly #onProgress: () => void;
  readonly #splitter = new EventSplitter(this);
  readonly #hold: HoldBytes;
  readonly #pieces: BoundedBytes;
  readonly #whole: BoundedBytes;
  #listener: SinkListener | null = null;
  #head: AnswerHead | null = null;
  #begun = false;
  #frames: Buffer[] = [];
  #held: Buffer[] = [];
  #holds = false;
  #paused = false;
  /** Whether the caller still listens. */
  #heard = true;
  #cutBy: CutBy | null = null;
  #closed = false;
  /** Told instead of an answer, or why it ended where it did. */
  refusal: DomainError | null = null;
  rejection: Rejection | null = null;
  /** An answer that is no stream, as it came. */
  wholeBody: Buffer | null = null;
  /** The answer broke off where its dialect has no way to tell. */
  broken = false;

  constructor({ reader, audience, hold, onProgress }: TurnSinkOptions) {
    this.#reader = reader;
    this.#audience = audience;
    this.#onProgress = onProgress;
    this.#hold = hold;
    this.#pieces = new BoundedBytes(hold);
    this.#whole = new BoundedBytes(hold);
    audience.listen(() => this.#drained());
  }

  /** Null where the answer came to its own end, good or bad. */
  get cutBy(): CutBy | null {
    return this.#cutBy;
  }

  /** Whether anything went out. */
  get begun(): boolean {
    return this.#begun;
  }

  listen(listener: SinkListener): void {
    this.#listener = listener;
    if (this.#closed) listener.onClosed(false);
  }

  carry(headers: Readonly<Record<string, string>>): void {
    this.#audience.carry(headers);
  }

  begin(head: AnswerHead): void {
    this.#head = head;
    if (head.status >= 400 || !this.#audience.streams || !this.#heard) return;
    this.#begun = true;
    this.#audience.begin(head.headers);
  }

  write(bytes: Buffer): boolean {
    if (this.#closed) return true;
    if (this.#isStream) this.#splitter.push(bytes);
    else this.#judge(this.#whole.add(bytes));
    this.#judge(this.#reader.size > MAX_CONVERTED_BYTES ? tooLong() : this.#hold(this.#reader.size));
    this.#send();
    this.#onProgress();
    return !this.#paused;
  }

  end(): void {
    if (this.#isStream) this.#takeRest();
    else this.#takeWhole();
    this.#close(true);
  }

  refuse(error: DomainError, headers: Readonly<Record<string, string>>): void {
    this.#audience.carry(headers);
    this.refusal = error;
    this.#close(true);
  }

  /** The caller stopped reading for too long, which is a way of leaving; or what was sent cannot be taken back. */
  break(): void {
    if (this.#paused) {
      this.#audience.break();
      return;
    }
    this.broken = true;
    this.#close(false);
  }

  /** Ends the answer here; what is there stays. One that has come to its end already is not touched. */
  cut(by: CutBy): void {
    if (this.#closed) return;
    if (by === "client_left") this.#heard = false;
    // All is said: there is nothing left to cut.
    if (!this.#reader.finished) this.#cutBy = by;
    this.#close(false);
  }

  /** The caller has left, and the answer goes on without them. */
  goOnUnheard(): void {
    this.#heard = false;
    this.#frames = [];
    this.#drained();
  }

  /** Once the turn is stored: what was kept back. @param last in place of it, where the turn ended in another way. */
  conclude(last?: string): void {
    if (!this.#audience.streams || !this.#heard) return;
    if (!this.#begun) this.#audience.begin({ "content-type": EVENT_STREAM_TYPE });
    this.#begun = true;
    this.#send();
    const held = last === undefined ? [...this.#held, Buffer.from(this.#reader.lastFrame)] : [Buffer.from(last)];
    this.#audience.write(Buffer.concat(held));
    this.#audience.end();
  }

  onEvents(bytes: Buffer): void {
    let start = 0;
    for (const end of eventEnds(bytes)) {
      this.#takeEvent(bytes.subarray(start, end));
      start = end;
    }
  }

  /** An event as long as this is the answer's last one, or nearly. */
  onPiece(bytes: Buffer, last: boolean): void {
    const fault = this.#pieces.add(bytes);
    this.#judge(fault);
    if (fault === null && last) this.onEvents(this.#pieces.take());
  }

  get #isStream(): boolean {
    return this.#head !== null && String(this.#head.headers["content-type"]).startsWith("text/event-stream");
  }

  #takeEvent(event: Buffer): void {
    const { data } = eventData(event.toString("utf8"));
    const taken = this.#reader.take(event, data);
    if (taken === "hide") return;
    const hold = taken === "hold" || (typeof taken === "object" && taken.hold);
    const bytes = typeof taken === "object" ? Buffer.from(taken.frame) : event;
    this.#holds ||= hold;
    (this.#holds ? this.#held : this.#frames).push(bytes);
  }

  #takeRest(): void {
    const rest = Buffer.concat([this.#pieces.take(), this.#splitter.takeRest()]);
    if (rest.length > 0) this.#takeEvent(Buffer.concat([rest, Buffer.from("\n\n")]));
  }

  #takeWhole(): void {
    const body = this.#whole.take();
    if (this.#head !== null && this.#head.status >= 400) {
      this.rejection = { ...this.#head, body };
      return;
    }
    try {
      this.#reader.takeWhole(jsonOr(body.toString("utf8"), null));
      this.wholeBody = body;
    } catch {
      this.broken = true;
    }
  }

  #send(): void {
    const frames = this.#frames.splice(0);
    if (frames.length === 0 || !this.#begun || !this.#heard) return;
    const [first] = frames;
    const bytes = frames.length === 1 && first !== undefined ? first : Buffer.concat(frames);
    if (!this.#audience.write(bytes)) this.#paused = true;
  }

  /** An answer that cannot be held cannot be stored. */
  #judge(fault: DomainError | null): void {
    if (fault === null || this.#closed) return;
    this.refusal = fault;
    this.#close(false);
  }

  #drained(): void {
    this.#paused = false;
    this.#listener?.onDrain();
  }

  /** The pipeline's part is over; the caller's may not be. */
  #close(whole: boolean): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#listener?.onClosed(whole);
  }
}
