import type { OutgoingHttpHeaders } from "node:http";
import type { Duplex } from "node:stream";
import type { DomainError } from "@fairlead/protocol/errors";
import type { AnswerClaim } from "../answers/answer-service.ts";
import { type KeptAnswer, MAX_ANSWER_BYTES } from "../answers/kept-answer.ts";
import type { AnswerHead, AnswerSink, SinkListener } from "./answer-sink.ts";
import { brokeOff } from "./relayed-answer.ts";

const KEPT_HEADERS = ["content-type", "content-encoding", "x-fairlead-upstream"];

/**
 * Keeps a good answer before its caller gets any of it, so that no crash in between makes a repeat run twice. A caller that leaves
 * is expected back: the call goes on, and its repeat is answered from what was kept.
 */
export class KeepingSink implements AnswerSink, SinkListener {
  readonly #sink: AnswerSink;
  readonly #claim: AnswerClaim;
  readonly #onKeepFailed: (error: unknown) => void;
  #listener: SinkListener | undefined;
  #head: AnswerHead | null = null;
  #pieces: Buffer[] = [];
  #bytes = 0;
  /** `holding` what comes, `keeping` it, or `passing` it on. */
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
    this.#pieces.push(bytes);
    this.#bytes += bytes.length;
    if (this.#phase === "holding" && this.#bytes > MAX_ANSWER_BYTES) void this.#keep(null);
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

  /** Of an answer that is held back nothing was said yet: it can be told with a status that it broke off. */
  break(): void {
    const held = this.#phase === "holding";
    this.#phase = "passing";
    if (this.#gone) this.#close(false);
    else if (held) this.#sink.refuse(brokeOff(), {});
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
      // The caller gets its answer all the same.
      this.#onKeepFailed(error);
    }
    this.#phase = "passing";
    if (this.#gone) {
      this.#close(answer !== null);
      return;
    }
    if (this.#head !== null) this.#sink.begin(this.#head);
    for (const piece of this.#pieces) this.#sink.write(piece);
    this.#pieces = [];
    if (this.#ended) this.#sink.end();
    else this.#listener?.onDrain();
  }

  #answer(): KeptAnswer {
    const { status, headers } = this.#head ?? { status: 200, headers: {} };
    return { status, headers: kept(headers), body: Buffer.concat(this.#pieces) };
  }

  #close(whole: boolean): void {
    this.#pieces = [];
    this.#listener?.onClosed(whole);
    this.#listener = undefined;
  }
}

function kept(headers: OutgoingHttpHeaders): Record<string, string> {
  return Object.fromEntries(
    KEPT_HEADERS.flatMap((name) => (headers[name] === undefined ? [] : [[name, String(headers[name])]])),
  );
}
