import type { IncomingHttpHeaders } from "node:http";
import type { ErrorCode } from "@fairlead/protocol/errors";
import type { InferenceCaller } from "../auth/principal.ts";
import type { Ticket } from "./admission.ts";
import type { Dialect } from "./dialect.ts";
import type { TokenUsage } from "./token-usage.ts";

/** A call as the pipeline takes it, from the inference host's edge or from inside this process. */
export interface InferenceCall {
  /** The request's id; every trace of the call bears it. */
  readonly id: string;
  readonly caller: InferenceCaller;
  readonly dialect: Dialect;
  /** Whole, as it was submitted. */
  readonly body: readonly Buffer[];
  /** The caller's; few of them go on (`headersForUpstream`). */
  readonly headers: IncomingHttpHeaders;
  /** Of a call that may be sent again, and is to be made once: it is refused where its body asks for a stream. */
  readonly idempotencyKey?: string;
  /** Its share of the host: the body's bytes are given back as soon as no attempt can need them. */
  readonly ticket: Ticket;
  /** Monotonic milliseconds at which it came in, and how many of those since then were spent waiting for its body. */
  readonly begunAt: number;
  readonly uploadMs: number;
}

/** How a call ended: `rejected` by the upstream, with its own words; an error code where we answered with one. `replayed`: never begun. */
export type CallOutcome = "ok" | "rejected" | "client_left" | "replayed" | ErrorCode;

/** What is known of a call when it is over; told exactly once for every call that reached the pipeline. */
export interface CallEnd {
  readonly id: string;
  readonly caller: InferenceCaller;
  readonly dialect: Dialect;
  readonly outcome: CallOutcome;
  /** As the caller saw it; null where an error was answered in other words, or nothing. */
  readonly status: number | null;
  readonly stream: boolean;
  /** As the caller named it, or the default; null where the call failed before that was known. */
  readonly model: string | null;
  /** That answered, or was tried last; null where none was. */
  readonly upstreamId: string | null;
  /** Null where nothing was generated, as far as anybody told. */
  readonly usage: TokenUsage | null;
  /** Whether the usage is ours and not the upstream's. */
  readonly estimated: boolean;
  /** What was charged, in nano-dollars. */
  readonly cost: number;
  /** How often it was sent to upstreams. */
  readonly attempts: number;
  /** What it cost on this host until its answer's head; null where none was begun. */
  readonly overheadMs: number | null;
  /** From the call's beginning; null where no token came, or the answer was no stream. */
  readonly firstTokenMs: number | null;
  readonly durationMs: number;
}
