import { DomainError } from "@fairlead/protocol/errors";
import { brokeOff, type RelayedAnswer } from "./relayed-answer.ts";
import { failureIn } from "./upstream-words.ts";

const MAX_BYTES = 64 * 1024;

/** An answer that is no event stream, after a stream was begun towards the caller to keep it alive: only an error can be told. */
export class LateAnswer implements RelayedAnswer {
  readonly canComment = true;
  readonly usage = null;
  readonly outputTokens = 0;
  readonly finished = false;
  readonly firstTokenAt = null;
  readonly failed = true;
  readonly #status: number;
  readonly #tell: (error: DomainError) => void;
  #pieces: Buffer[] = [];
  #bytes = 0;

  /** @param tell sends an error to the caller, in-band. */
  constructor(status: number, tell: (error: DomainError) => void) {
    this.#status = status;
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
    if (this.#status < 300) return brokeOff();
    const told = text === null ? null : failureIn(errorMember(text));
    return told?.error ?? new DomainError("upstream_failed", `The upstream answered with status ${this.#status}.`);
  }
}

function errorMember(text: string): unknown {
  try {
    const body: unknown = JSON.parse(text);
    return typeof body === "object" && body !== null && "error" in body ? body.error : body;
  } catch {
    return null;
  }
}
