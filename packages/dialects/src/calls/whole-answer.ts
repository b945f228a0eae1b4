import type { DomainError } from "@fairlead/protocol/errors";
import { GrowingBuffer } from "@fairlead/wire/growing-buffer";
import { MemberReader } from "../json/member-reader.ts";
import type { Dialect } from "./dialect.ts";
import { noResponse, type RelayedAnswer, type Send, upstreamBrokeOff } from "./relayed-answer.ts";
import { BYTES_PER_TOKEN, readUsage, type TokenUsage } from "./token-usage.ts";
import { failureIn } from "./upstream-failure.ts";

const OPEN_BRACE = 0x7b;
/** Some upstreams send whitespace while they work; more than this is not a response. */
const MAX_LEADING_BYTES = 64 * 1024;

export interface WholeOptions {
  readonly dialect: Dialect;
  /** False for a compressed body, which is relayed unread. */
  readonly readable: boolean;
}

/**
 * Relays a non-streaming response unchanged and reads its usage. The first chunk is held until the next one or the end, so that another
 * upstream can be tried if it is not a response.
 */
export class WholeAnswer implements RelayedAnswer {
  readonly canComment = false;
  readonly finished = false;
  readonly firstTokenAt = null;
  readonly #send: Send;
  readonly #dialect: Dialect;
  readonly #members: MemberReader | null;
  /** The chunk that begins the object. */
  #first: Buffer | null = null;
  /** Whitespace before it. */
  readonly #leading = new GrowingBuffer();
  #phase: "leading" | "begun" | "passing" = "leading";
  #bytes = 0;
  /** Read once when complete, because it is needed more than once. */
  #told: Told | null = null;

  constructor(send: Send, { dialect, readable }: WholeOptions) {
    this.#send = send;
    this.#dialect = dialect;
    this.#members = readable ? new MemberReader(["usage", "error"]) : null;
  }

  push(chunk: Buffer): DomainError | null {
    this.#bytes += chunk.length;
    this.#members?.push(chunk);
    if (this.#phase === "leading") return this.#begin(chunk);
    if (this.#phase === "begun") this.#pass();
    this.#send(chunk);
    return null;
  }

  end(): DomainError | null {
    this.#told = this.#read();
    const isCut = this.#members?.isWhole === false;
    if (this.#phase === "passing") return isCut ? upstreamBrokeOff() : null;
    const fault = this.#faultOfSmall(isCut);
    if (fault === null) this.#pass();
    // Nothing was sent: an invalid response has no usage.
    else this.#told = { usage: null, failed: true };
    return fault;
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

  /** Some upstreams send errors with status 200. */
  get failed(): boolean {
    return (this.#told ?? this.#read()).failed;
  }

  #begin(chunk: Buffer): DomainError | null {
    const first = this.#members === null ? OPEN_BRACE : firstByte(chunk);
    if (first === null) {
      this.#leading.append(chunk);
      return this.#bytes > MAX_LEADING_BYTES ? noResponse("returned only whitespace") : null;
    }
    if (first !== OPEN_BRACE) return noResponse("returned a body that is not a JSON object");
    this.#first = chunk;
    this.#phase = "begun";
    return null;
  }

  #faultOfSmall(isCut: boolean): DomainError | null {
    if (this.#phase === "leading") return noResponse("returned an empty body instead of JSON");
    return failureIn(this.#members?.value("error"))?.error ?? (isCut ? upstreamBrokeOff() : null);
  }

  #pass(): void {
    const first = this.#first;
    this.#first = null;
    this.#phase = "passing";
    if (this.#leading.length > 0) this.#send(this.#leading.bytes);
    this.#leading.clear();
    if (first !== null) this.#send(first);
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

/** @returns the first byte that is neither whitespace nor part of a byte order mark, or null. */
function firstByte(chunk: Buffer): number | null {
  for (const byte of chunk) {
    const isSkipped =
      byte === 0x20 || (byte >= 0x09 && byte <= 0x0d) || byte === 0xef || byte === 0xbb || byte === 0xbf;
    if (!isSkipped) return byte;
  }
  return null;
}
