import type { OutgoingHttpHeaders } from "node:http";
import { EVENT_STREAM_TYPE } from "@fairlead/dialects/calls/relayed-answer";
import type { AnswerEvent } from "@fairlead/dialects/events/answer-event";
import { BoundedBytes, type HoldBytes } from "@fairlead/dialects/json/bounded-bytes";
import { jsonOr } from "@fairlead/dialects/json/json-or";
import type { AnswerHead, AnswerSink, SinkListener } from "@fairlead/inference/calls/answer-sink";
import { DomainError } from "@fairlead/protocol/errors";
import type { AnswerReader } from "./answer-reader.ts";

/** The recipient of a turn's response: its client's connection, if any. */
export interface Audience {
  /** Headers of every response. Call it first. */
  carry(headers: Readonly<Record<string, string>>): void;
  /** @param onDrain called when a slow client can receive more. */
  listen(onDrain: () => void): void;
  /** Whether the response is streamed; otherwise nothing is sent before its end. */
  readonly streams: boolean;
  begin(headers: OutgoingHttpHeaders): void;
  /** @returns false if the client is too slow. */
  write(bytes: Buffer): boolean;
  end(): void;
  /** Aborts the connection. */
  break(): void;
}

/** An upstream's error, with its message. */
export interface Rejection {
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
  readonly body: Buffer;
}

export interface TurnSinkOptions {
  readonly reader: AnswerReader;
  readonly audience: Audience;
  /** Memory budget for what is read of the response until it is stored. */
  readonly hold: HoldBytes;
  /** Called when more of the response has arrived. */
  readonly onProgress: () => void;
}

/** Maximum size of a response that is read and stored. */
const MAX_STORED_BYTES = 32 * 1024 * 1024;

/** Why a response ended before the upstream finished it. */
export type CutBy = "client_left" | "stopped";

/**
 * Sits between the pipeline and a turn's client: reads the response as it is sent, and holds back its end until it is
 * stored (decisions/0022).
 */
export class TurnSink implements AnswerSink {
  readonly connection = null;
  readonly readsEvents = true;
  readonly #reader: AnswerReader;
  readonly #audience: Audience;
  readonly #onProgress: () => void;
  readonly #hold: HoldBytes;
  readonly #whole: BoundedBytes;
  #listener: SinkListener | null = null;
  #head: AnswerHead | null = null;
  #begun = false;
  #frames: Buffer[] = [];
  #held: Buffer[] = [];
  #holds = false;
  #paused = false;
  /** Whether the client is still connected. */
  #heard = true;
  #cutBy: CutBy | null = null;
  #closed = false;
  /** The error sent instead of a response, or the reason why it ended early. */
  refusal: DomainError | null = null;
  rejection: Rejection | null = null;
  /** A non-streamed response, unchanged. */
  wholeBody: Buffer | null = null;
  /** The response was cut off in a dialect that cannot report it. */
  broken = false;

  constructor({ reader, audience, hold, onProgress }: TurnSinkOptions) {
    this.#reader = reader;
    this.#audience = audience;
    this.#onProgress = onProgress;
    this.#hold = hold;
    this.#whole = new BoundedBytes(hold);
    audience.listen(() => this.#drained());
  }

  /** Null if the response ended by itself, successfully or not. */
  get cutBy(): CutBy | null {
    return this.#cutBy;
  }

  /** Whether anything was sent. */
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
    if (head.model !== undefined) this.#reader.answeredBy(head.model);
    if (head.status >= 400 || !this.#audience.streams || !this.#heard) return;
    this.#begun = true;
    this.#audience.begin(head.headers);
  }

  /** @param events of a stream; absent for other bodies. */
  write(bytes: Buffer, events?: readonly AnswerEvent[]): boolean {
    if (this.#closed) return true;
    if (events === undefined) this.#judge(this.#whole.add(bytes));
    else for (const event of events) this.#takeEvent(event);
    this.#judge(this.#reader.size > MAX_STORED_BYTES ? tooLong() : this.#hold(this.#reader.size));
    this.#send();
    this.#onProgress();
    return !this.#paused;
  }

  end(): void {
    if (!this.#isStream) this.#takeWhole();
    this.#close(true);
  }

  refuse(error: DomainError, headers: Readonly<Record<string, string>>): void {
    this.#audience.carry(headers);
    this.refusal = error;
    this.#close(true);
  }

  /** The client stopped reading for too long, which counts as leaving, or a partial response cannot be taken back. */
  break(): void {
    if (this.#paused) {
      this.#audience.break();
      return;
    }
    this.broken = true;
    this.#close(false);
  }

  /** Ends the response here and keeps its content. No effect on a finished response. */
  cut(by: CutBy): void {
    if (this.#closed) return;
    if (by === "client_left") this.#heard = false;
    // A finished response cannot be cut.
    if (!this.#reader.finished) this.#cutBy = by;
    this.#close(false);
  }

  /** The client disconnected; the response continues without it. */
  goOnUnheard(): void {
    this.#heard = false;
    this.#frames = [];
    this.#drained();
  }

  /** Sends what was held back, once the turn is stored. @param last sent instead, if the turn ended in another way. */
  conclude(last?: string): void {
    if (!this.#audience.streams || !this.#heard) return;
    if (!this.#begun) this.#audience.begin({ "content-type": EVENT_STREAM_TYPE });
    this.#begun = true;
    this.#send();
    const held = last === undefined ? [...this.#held, Buffer.from(this.#reader.lastFrame)] : [Buffer.from(last)];
    this.#audience.write(Buffer.concat(held));
    this.#audience.end();
  }

  get #isStream(): boolean {
    return this.#head !== null && String(this.#head.headers["content-type"]).startsWith("text/event-stream");
  }

  #takeEvent(event: AnswerEvent): void {
    const taken = this.#reader.take(event);
    if (taken === "hide") return;
    const hold = taken === "hold" || (typeof taken === "object" && taken.hold);
    const bytes = typeof taken === "object" ? Buffer.from(taken.frame) : event.bytes;
    this.#holds ||= hold;
    (this.#holds ? this.#held : this.#frames).push(bytes);
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

  /** A response that exceeds the memory budget cannot be stored. */
  #judge(fault: DomainError | null): void {
    if (fault === null || this.#closed) return;
    this.refusal = fault;
    this.#close(false);
  }

  #drained(): void {
    this.#paused = false;
    this.#listener?.onDrain();
  }

  /** The pipeline is done; the client may not be. */
  #close(whole: boolean): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#listener?.onClosed(whole);
  }
}

function tooLong(): DomainError {
  return new DomainError("upstream_failed", `The upstream's response is longer than ${MAX_STORED_BYTES} bytes.`);
}
