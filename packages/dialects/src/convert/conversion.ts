import type { DomainError } from "@fairlead/protocol/errors";
import type { Dialect } from "../calls/dialect.ts";
import type { MadeEvent } from "../events/sse.ts";
import type { BridgeCall } from "./bridge-call.ts";
import type { ResponseObject } from "./wire.ts";

/** Called once with the output of a successful response, for callers that reference its items. */
export type OnOutput = (output: ResponseObject["output"]) => void;

/** A call converted to another dialect. */
export interface ConvertedCall {
  /** JSON. */
  readonly request: string;
  readonly conversion: Conversion;
}

/** Converts the response, complete or streamed, back to the caller's dialect. */
export interface Conversion {
  /** The upstream's dialect. */
  readonly dialect: Dialect;
  /** Paths of request fields that have no effect. */
  readonly ignored: readonly string[];
  stream(): ConvertedStream;
  /** @param answer parsed. @returns JSON. @throws DomainError `upstream_failed` if it is not a response, or a failed one. */
  whole(answer: unknown): string;
}

/** Converts a stream's events as early as possible. */
export interface ConvertedStream {
  /** @param event one event's data, parsed; or a complete response. */
  push(event: unknown): readonly MadeEvent[];
  /** The upstream's stream ended. */
  end(): readonly MadeEvent[];
  /** The call failed. */
  fail(error: DomainError): readonly MadeEvent[];
  /** Whether the last frame was generated. */
  readonly ended: boolean;
  /** The failure's message; null if it is not a failure. */
  readonly failure: string | null;
}

export interface Submitted {
  /** Parsed by `parseExact`. */
  readonly body: unknown;
  readonly onOutput?: OnOutput;
}

/**
 * Converts a call to another dialect.
 * @throws DomainError `invalid_request` or `previous_response_not_found`, with `param`.
 */
export type Converter = (submitted: Submitted, call: BridgeCall) => ConvertedCall;
