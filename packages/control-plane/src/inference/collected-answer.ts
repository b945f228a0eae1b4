import { DomainError } from "@fairlead/protocol/errors";
import { BoundedBytes, type HoldBytes } from "./bounded-bytes.ts";
import { isObject } from "./bridge/parse.ts";
import type { Dialect } from "./dialect.ts";
import { jsonOr } from "./json-or.ts";
import type { RelayedAnswer, Send } from "./relayed-answer.ts";
import { BYTES_PER_TOKEN, readUsage, type TokenUsage } from "./token-usage.ts";

export interface CollectedOptions {
  /** What the upstream speaks; null of a refusal, which uses nothing, whatever it tells. */
  readonly dialect: Dialect | null;
  /** @param body the upstream's, parsed; a text where it is no JSON. @throws DomainError for what cannot be converted. */
  readonly convert: (body: unknown) => string;
  /** Tells the caller of an error, in-band; null where no stream is due to it. */
  readonly tell: ((error: DomainError) => void) | null;
  readonly hold: HoldBytes;
}

/** An answer in one piece, which has to be whole before it can be converted. */
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
    const { dialect, convert } = this.#options;
    const text = this.#body.take().toString("utf8");
    const body = jsonOr(text, text);
    if (dialect !== null && isObject(body)) this.#usage = readUsage(dialect, body["usage"]);
    try {
      this.#send(Buffer.from(convert(body)));
      return null;
    } catch (error) {
      if (error instanceof DomainError) return error;
      throw error;
    }
  }

  fail(error: DomainError): boolean {
    this.#options.tell?.(error);
    return this.#options.tell !== null;
  }
}
