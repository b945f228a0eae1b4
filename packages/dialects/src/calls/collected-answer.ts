import { DomainError } from "@fairlead/protocol/errors";
import { readAnswerEvents } from "../events/answer-event.ts";
import { BoundedBytes, type HoldBytes } from "../json/bounded-bytes.ts";
import { jsonOr } from "../json/json-or.ts";
import { isObject } from "../json/parse.ts";
import type { Dialect } from "./dialect.ts";
import type { RelayedAnswer, Send } from "./relayed-answer.ts";
import { BYTES_PER_TOKEN, readUsage, type TokenUsage } from "./token-usage.ts";

const BYTE_ORDER_MARK = /^\ufeff/;

export interface CollectedOptions {
  /** The upstream's dialect; null for an error, whose usage is ignored. */
  readonly dialect: Dialect | null;
  /** @param body the upstream's, parsed; a string if it is not JSON. @throws DomainError if it cannot be converted. */
  readonly convert: (body: unknown) => string;
  /** Sends an error to the client in-band; null if no stream is expected. */
  readonly tell: ((error: DomainError) => void) | null;
  readonly hold: HoldBytes;
  /** Whether the caller's sink reads events, if a stream is expected. */
  readonly readsEvents: boolean;
}

/** Buffers a complete response before converting it. */
export class CollectedAnswer implements RelayedAnswer {
  readonly firstTokenAt = null;
  readonly finished = false;
  readonly failed = false;
  readonly canComment: boolean;
  readonly #send: Send;
  readonly #options: CollectedOptions;
  readonly #body: BoundedBytes;
  #bytes = 0;
  #usage: TokenUsage | null = null;

  constructor(send: Send, options: CollectedOptions) {
    this.#send = send;
    this.#options = options;
    this.#body = new BoundedBytes(options.hold);
    this.canComment = options.tell !== null;
  }

  get usage(): TokenUsage | null {
    return this.#usage;
  }

  get outputTokens(): number {
    return Math.ceil(this.#bytes / BYTES_PER_TOKEN);
  }

  push(chunk: Buffer): DomainError | null {
    this.#bytes += chunk.length;
    return this.#body.add(chunk);
  }

  end(): DomainError | null {
    const { dialect, convert, tell, readsEvents } = this.#options;
    const text = this.#body.take().toString("utf8").replace(BYTE_ORDER_MARK, "");
    const body = jsonOr(text, text);
    if (dialect !== null && isObject(body)) this.#usage = readUsage(dialect, body["usage"]);
    try {
      const bytes = Buffer.from(convert(body));
      this.#send(bytes, tell !== null && readsEvents ? readAnswerEvents(bytes) : undefined);
      return null;
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
      // An error has no usage, whatever it says.
      this.#usage = null;
      this.#bytes = 0;
      return error;
    }
  }

  fail(error: DomainError): boolean {
    this.#options.tell?.(error);
    return this.#options.tell !== null;
  }
}
