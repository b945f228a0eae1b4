import type { DomainError } from "@fairlead/protocol/errors";
import type { Dialect } from "./dialect.ts";
import { MemberReader } from "./member-reader.ts";
import type { RelayedAnswer, Send } from "./relayed-answer.ts";
import { BYTES_PER_TOKEN, readUsage, type TokenUsage } from "./token-usage.ts";

/** An answer in one piece. Every byte goes on as it came; where it is JSON, its usage is read on the way. */
export class WholeAnswer implements RelayedAnswer {
  readonly canComment = false;
  readonly finished = false;
  readonly firstTokenAt = null;
  readonly #send: Send;
  readonly #dialect: Dialect;
  readonly #members: MemberReader | null;
  #bytes = 0;
  /** Read once, when all is there: it is asked for more than once. */
  #told: Told | null = null;

  constructor(send: Send, options: { readonly dialect: Dialect; readonly json: boolean }) {
    this.#send = send;
    this.#dialect = options.dialect;
    this.#members = options.json ? new MemberReader(["usage", "error"]) : null;
  }

  push(chunk: Buffer): null {
    this.#bytes += chunk.length;
    this.#members?.push(chunk);
    this.#send(chunk);
    return null;
  }

  end(): null {
    this.#told = this.#read();
    return null;
  }

  fail(_error: DomainError): boolean {
    return false;
  }

  get usage(): TokenUsage | null {
    return (this.#told ?? this.#read()).usage;
  }

  get outputTokens(): number {
    return this.failed ? 0 : Math.ceil(this.#bytes / BYTES_PER_TOKEN);
  }

  /** Some upstreams tell of errors with status 200. */
  get failed(): boolean {
    return (this.#told ?? this.#read()).failed;
  }

  #read(): Told {
    const members = this.#members;
    return { usage: readUsage(this.#dialect, members?.value("usage")), failed: Boolean(members?.value("error")) };
  }
}

interface Told {
  readonly usage: TokenUsage | null;
  readonly failed: boolean;
}
