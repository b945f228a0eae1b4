import type { RelayedAnswer } from "@fairlead/dialects/calls/relayed-answer";
import { jsonOr } from "@fairlead/dialects/json/json-or";
import { isObject } from "@fairlead/dialects/json/parse";
import type { DomainError } from "@fairlead/protocol/errors";
import { GrowingBuffer } from "@fairlead/wire/growing-buffer";
import { statusFailure } from "../routing/upstream-faults.ts";
import { type RefusalHead, readUpstreamRefusal } from "../routing/upstream-refusal.ts";

const MAX_BYTES = 64 * 1024;

/** An error after keep-alive comments have started the client's stream: it can only be sent in-band. */
export class AnswerAfterKeepalive implements RelayedAnswer {
  readonly canComment = true;
  readonly usage = null;
  readonly outputTokens = 0;
  readonly finished = false;
  readonly firstTokenAt = null;
  readonly failed = true;
  readonly #head: RefusalHead;
  readonly #tell: (error: DomainError) => void;
  readonly #bytes = new GrowingBuffer();

  /** `tell` sends an error to the client in-band. */
  constructor(head: RefusalHead, tell: (error: DomainError) => void) {
    this.#head = head;
    this.#tell = tell;
  }

  push(chunk: Buffer): DomainError | null {
    if (this.#bytes.length + chunk.length > MAX_BYTES) return this.#fault(null);
    this.#bytes.append(chunk);
    return null;
  }

  end(): DomainError {
    return this.#fault(this.#bytes.bytes.toString());
  }

  fail(error: DomainError): boolean {
    this.#tell(error);
    return true;
  }

  #fault(text: string | null): DomainError {
    this.#bytes.clear();
    const body = text === null ? null : jsonOr(text, null);
    if (isObject(body)) return readUpstreamRefusal(body, this.#head).error;
    return statusFailure(this.#head);
  }
}
