import type { OutgoingHttpHeaders } from "node:http";
import type { Duplex } from "node:stream";
import { upstreamBrokeOff } from "@fairlead/dialects/calls/relayed-answer";
import type { DomainError } from "@fairlead/protocol/errors";
import { GrowingBuffer } from "@fairlead/wire/growing-buffer";
import type { AnswerHead, AnswerSink, SinkListener } from "../calls/answer-sink.ts";
import { type KeptAnswer, MAX_ANSWER_BYTES } from "../ports/kept-answer.ts";
import type { AnswerClaim } from "../ports/kept-answers.ts";

const KEPT_HEADERS = ["content-type", "content-encoding", "x-fairlead-upstream"];

/**
 * Stores a successful response before its client receives any of it, so that a retry never runs twice, even after a crash. If the
 * client disconnects, the call continues, and a retry gets the stored response.
 */
export class RecordingSink implements AnswerSink, SinkListener {
  readonly readsEvents = false;
  readonly #sink: AnswerSink;
  readonly #claim: AnswerClaim;
  readonly #onKeepFailed: (error: unknown) => void;
  #listener: SinkListener | undefined;
  #head: AnswerHead | null = null;
  readonly #bytes = new GrowingBuffer();
  /** `holding`: buffering the response; `keeping`: storing it; `passing`: sending it. */
  #phase: "holding" | "keeping" | "passing" = "holding";
  #gone = false;
  #ended = false;

  constructor(sink: AnswerSink, claim: AnswerClaim, onKeepFailed: (error: unknown) => void) {
    this.#sink = sink;
    this.#claim = claim;
    this.#onKeepFailed = onKeepFailed;
  }

  get connection(): Duplex | null {
    return this.#sink.connection;
  }

  listen(listener: SinkListener): void {
    this.#listener = listener;
    this.#sink.listen(this);
  }

  carry(headers: Readonly<Record<string, string>>): void {
    this.#sink.carry(headers);
  }

  begin(head: AnswerHead): void {
    this.#head = head;
    if (head.status >= 200 && head.status < 300) return;
    this.#phase = "passing";
    if (this.#gone) this.#close(false);
    else this.#sink.begin(head);
  }

  write(bytes: Buffer): boolean {
    if (this.#phase === "passing") return this.#sink.write(bytes);
    this.#bytes.append(bytes);
    if (this.#phase === "holding" && this.#bytes.length > MAX_ANSWER_BYTES) void this.#keep(null);
    return this.#phase === "holding";
  }

  end(): void {
    this.#ended = true;
    if (this.#phase === "passing") this.#sink.end();
    else if (this.#phase === "holding") void this.#keep(this.#answer());
  }

  refuse(error: DomainError, headers: Readonly<Record<string, string>>): void {
    this.#phase = "passing";
    if (this.#gone) this.#close(false);
    else this.#sink.refuse(error, headers);
  }

  /** Nothing of a buffered response was sent, so a failure can still set the status. */
  break(): void {
    const held = this.#phase === "holding";
    this.#phase = "passing";
    if (this.#gone) this.#close(false);
    else if (held) this.#sink.refuse(upstreamBrokeOff(), {});
    else this.#sink.break();
  }

  onDrain(): void {
    this.#listener?.onDrain();
  }

  onClosed(whole: boolean): void {
    this.#gone = true;
    if (this.#phase === "passing") this.#close(whole);
  }

  async #keep(answer: KeptAnswer | null): Promise<void> {
    this.#phase = "keeping";
    try {
      await this.#claim.keep(answer);
    } catch (error) {
      // The client gets its response anyway.
      this.#onKeepFailed(error);
    }
    this.#phase = "passing";
    if (this.#gone) {
      this.#close(answer !== null);
      return;
    }
    if (this.#head !== null) this.#sink.begin(this.#head);
    if (this.#bytes.length > 0) this.#sink.write(this.#bytes.bytes);
    this.#bytes.clear();
    if (this.#ended) this.#sink.end();
    else this.#listener?.onDrain();
  }

  #answer(): KeptAnswer {
    const { status, headers } = this.#head ?? { status: 200, headers: {} };
    return { status, headers: kept(headers), body: this.#bytes.bytes };
  }

  #close(whole: boolean): void {
    this.#bytes.clear();
    this.#listener?.onClosed(whole);
    this.#listener = undefined;
  }
}

function kept(headers: OutgoingHttpHeaders): Record<string, string> {
  return Object.fromEntries(
    KEPT_HEADERS.flatMap((name) => (headers[name] === undefined ? [] : [[name, String(headers[name])]])),
  );
}
