import type { OutgoingHttpHeaders } from "node:http";
import type { Duplex } from "node:stream";
import type { AnswerEvent } from "@fairlead/dialects/events/answer-event";
import type { DomainError } from "@fairlead/protocol/errors";

/** Destination of a call's response: an HTTP response, or a caller in this process. */
export interface AnswerSink {
  /** The client's connection; null for callers in this process. */
  readonly connection: Duplex | null;
  /** Called once, before anything else. */
  listen(listener: SinkListener): void;
  /** Headers of every response, including errors that bypass this sink. Called before the response starts. */
  carry(headers: Readonly<Record<string, string>>): void;
  /** Starts the response. */
  begin(head: AnswerHead): void;
  /** Whether it takes a stream's events one by one: the pipeline parses them anyway, so they are parsed once. */
  readonly readsEvents: boolean;
  /**
   * @param events contained in the bytes, if this is a stream and the sink reads events.
   * @returns false when the caller should wait for `onDrain`.
   */
  write(bytes: Buffer, events?: readonly AnswerEvent[]): boolean;
  /** Ends a response that was started. */
  end(): void;
  /** The call failed before the response started. @param headers in addition to those of all errors. */
  refuse(error: DomainError, headers: Readonly<Record<string, string>>): void;
  /** Reports a failure the only way left: by aborting the connection. */
  break(): void;
}

export interface AnswerHead {
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
  /** The model that responds, as callers can name it; absent if unknown. */
  readonly model?: string | undefined;
}

export interface SinkListener {
  onDrain(): void;
  /** Called once: nothing more can be sent. @param whole whether the client received everything, including the end. */
  onClosed(whole: boolean): void;
}
