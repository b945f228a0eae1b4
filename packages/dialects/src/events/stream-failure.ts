import type { DomainError } from "@fairlead/protocol/errors";
import type { Dialect } from "../calls/dialect.ts";
import { DIALECT_SPECS } from "../dialect-specs.ts";

/** Ends a stream that fails after status 200: in the caller's dialect, and never cleanly (decisions/0017). */

/** What the client has received of a stream. */
export interface StreamSoFar {
  readonly dialect: Dialect;
  readonly requestId: string;
  /** Whether any event was sent. */
  readonly begun: boolean;
  /** Whether the upstream's own error was already sent. */
  readonly errorTold: boolean;
  /** Of the last event; -1 if the dialect has no sequence numbers. */
  readonly sequence: number;
  /** From the first event; null if it had none, or the dialect has none. */
  readonly response: ResponseIdentity | null;
  /** The model as the caller named it. */
  readonly model: string;
  /** Unix seconds. */
  readonly createdAt: number;
}

export interface ResponseIdentity {
  readonly id: string;
  readonly model: string;
  readonly createdAt: number;
}

/** @returns complete events. */
export function failureEvents(stream: StreamSoFar, error: DomainError): string {
  return DIALECT_SPECS[stream.dialect].failureEvents(stream, error);
}
