import type { OutgoingHttpHeaders } from "node:http";
import type { Duplex } from "node:stream";
import type { DomainError } from "@fairlead/protocol/errors";

/** Where the answer to a call goes: an HTTP response, or a caller in this process. */
export interface AnswerSink {
  /** The connection that it is written on; null where there is none. */
  readonly connection: Duplex | null;
  /** Called once, before anything else. */
  listen(listener: SinkListener): void;
  /** What the answer bears in any case, be it a refusal that nobody told this sink. Called before anything is said. */
  carry(headers: Readonly<Record<string, string>>): void;
  /** An answer begins. */
  begin(head: AnswerHead): void;
  /** @returns false when the caller does not keep up: `onDrain` tells when to go on. */
  write(bytes: Buffer): boolean;
  /** The end of an answer that was begun. */
  end(): void;
  /** The call failed before an answer was begun. @param headers beside those that errors carry. */
  refuse(error: DomainError, headers: Readonly<Record<string, string>>): void;
  /** There is no way to tell of the failure but to break off. */
  break(): void;
}

export interface AnswerHead {
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
}

export interface SinkListener {
  onDrain(): void;
  /** Called once: nothing more can be sent. @param whole whether the caller took all that was written, and its end. */
  onClosed(whole: boolean): void;
}
