import { DomainError } from "@fairlead/protocol/errors";
import { isObject } from "./bridge/parse.ts";
import { jsonOr } from "./json-or.ts";
import { brokeOff, type RelayedAnswer } from "./relayed-answer.ts";
import { type RefusalHead, readRefusal } from "./upstream-refusal.ts";

const MAX_BYTES = 64 * 1024;

/** An answer that is no event stream, after a stream was begun towards the caller to keep it alive: only an error can be told. */
export class LateAnswer implements RelayedAnswer {
  readonly canComment = true;
  readonly usage = null;
  readonly outputTokens = 0;
  readonly finished = false;
  readonly firstTokenAt = null;
  readonly failed = true;
  readonly #head: RefusalHead;
  readonly #tell: (error: DomainError) => void;
  #pieces: Buffer[] = [];
  #bytes = 0;

  /** @param tell sends an error to the caller, in-band. */
  constructor(head: RefusalHead, tell: (error: DomainError) => void) {
    this.#head = head;
    this.#tell = tell;
  }

  push(chunk: Buffer): DomainError | null {
    this.#bytes += chunk.length;
    if (this.#bytes > MAX_BYTES) return this.#fault(null);
    this.#pieces.push(chunk);
    return null;
  }

  end(): DomainError {
    return this.#fault(Buffer.concat(this.#pieces).toString());
  }

  fail(error: DomainError): boolean {
    this.#tell(error);
    return true;
  }

  #fault(text: string | null): DomainError {
    this.#pieces = [];
    if (this.#head.status < 300) return brokeOff();
    const body = text === null ? null : jsonOr(text, null);
    if (isObject(body)) return readRefusal(body, this.#head).error;
    return new DomainError("upstream_failed", `The upstream answered with status ${this.#head.status}.`);
  }
}
