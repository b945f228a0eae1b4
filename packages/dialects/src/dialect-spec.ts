import type { DomainError, ErrorCode } from "@fairlead/protocol/errors";
import type { CountField } from "./calls/call-counts.ts";
import type { CallMembers } from "./calls/call-members.ts";
import type { ToldError } from "./convert/upstream-error.ts";
import type { JsonObject, WireError } from "./convert/wire.ts";
import type { EventReader } from "./events/event-reader.ts";
import type { ResponseIdentity, StreamSoFar } from "./events/stream-failure.ts";

/** Everything that the platform knows of one dialect. Conversions between dialects are in `dialect-specs.ts`. */
export interface DialectSpec {
  /** Below an upstream's base URL, and below `/v1` on the inference host. */
  readonly path: string;
  readonly operation: CallOperation;
  readonly request: RequestSpec;
  /** Names of the counts in `usage`. The details of each are in `<name>_details`. */
  readonly usage: UsageNames;
  readonly events: EventSpec;
  /** Whether a provider may store responses and run tools by itself, so that a call that failed may still have had an effect. */
  readonly stateful: boolean;
  /**
   * Converts a complete response to a stream, for an upstream that did not stream as asked.
   * @returns whole frames, the last included. @throws DomainError `upstream_failed` for what is no response.
   */
  readonly wholeAsStream: (response: JsonObject, hidesUsage: boolean) => string;
  /** @returns whole events that end a stream which failed after its 200; "" if it has ended already. */
  readonly failureEvents: (stream: StreamSoFar, error: DomainError) => string;
  /** Names the field at fault as callers of this dialect know it: an upstream names the field that it was sent. */
  readonly nameError: (error: ToldError, requestId: string) => WireError;
}

/** The call in the API document. */
export interface CallOperation {
  readonly operationId: string;
  readonly summary: string;
  /** JSON Schema. */
  readonly body: JsonObject;
  /** Codes that only calls of this dialect return. */
  readonly errors: readonly ErrorCode[];
}

export interface RequestSpec {
  readonly members: CallMembers;
  readonly outputLimits: OutputLimits;
  /** Whether a stream reports its usage only if `stream_options.include_usage` asks for it. */
  readonly usageOnRequest: boolean;
  /** The member whose items may name items of earlier responses by id; null if the dialect has no such references. */
  readonly referringMember: string | null;
}

export interface OutputLimits {
  /** Members that limit the output. A converter reads all of them. */
  readonly known: readonly CountField[];
  /** Those that every upstream of this dialect obeys; the others only if its settings say so. */
  readonly everywhere: readonly CountField[];
}

export interface UsageNames {
  readonly input: string;
  readonly output: string;
}

/** Events of a stream. Functions that take bytes run for every chunk, so they parse and allocate nothing. */
export interface EventSpec {
  /** Whether these whole events may report usage, an error or the end. The first event is read anyway if `hasHead`. */
  readonly isNotable: (bytes: Buffer) => boolean;
  /** Members that are read of a notable event. */
  readonly members: readonly string[];
  readonly read: (event: EventReader) => EventFacts;
  /** Whether the first event says which response this is. */
  readonly hasHead: boolean;
  /** Whether events have a `sequence_number`. */
  readonly numbered: boolean;
  /** Whether `[DONE]` says that the response is complete. Otherwise it says nothing. */
  readonly doneEnds: boolean;
  /** Whether an error event ends the stream. Otherwise another event has to follow. */
  readonly errorEnds: boolean;
  /** @param start after `"delta":`. @returns where the delta ends. */
  readonly deltaEnd: (bytes: Buffer, start: number) => number;
  /** @returns how many bytes of text the delta holds. */
  readonly deltaTextBytes: (bytes: Buffer, start: number, end: number) => number;
}

/** What one notable event reports, an error aside. */
export interface EventFacts {
  /** The member `usage`, parsed. */
  readonly usage?: unknown;
  /** Whether it holds nothing but usage. */
  readonly onlyUsage?: boolean;
  /** `done`: `[DONE]`; `complete` and `failed`: the event that holds the final response. */
  readonly end?: "done" | "complete" | "failed" | null;
  readonly head?: ResponseIdentity | null;
}
