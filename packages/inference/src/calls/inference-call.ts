import type { IncomingHttpHeaders } from "node:http";
import type { CallScan } from "@fairlead/dialects/calls/call-scan";
import type { Dialect } from "@fairlead/dialects/calls/dialect";
import type { TokenUsage } from "@fairlead/dialects/calls/token-usage";
import type { JsonObject } from "@fairlead/dialects/convert/wire";
import type { Ticket } from "@fairlead/hosting/requests/admission";
import type { ErrorCode } from "@fairlead/protocol/errors";
import type { InferenceCaller } from "../ports/inference-caller.ts";
import type { Candidate } from "./model-catalog.ts";

/** Input of the pipeline, from the inference host or from this process. */
export interface InferenceCall {
  /** Request ID, on every trace of the call. */
  readonly id: string;
  readonly caller: InferenceCaller;
  readonly dialect: Dialect;
  /** The complete body as submitted. */
  readonly body: readonly Buffer[];
  /** The caller's headers; few are forwarded (`headersForUpstream`). */
  readonly headers: IncomingHttpHeaders;
  /** Makes the call idempotent. Rejected if the body requests a stream. */
  readonly idempotencyKey?: string;
  /** For calls made by this process; the pipeline then neither scans the body nor resolves the model. */
  readonly known?: KnownCall;
  /** The call's memory reservation. The body's bytes are released once no attempt can need them. */
  readonly ticket: Ticket;
  /** Monotonic milliseconds at arrival, and how many since then were spent waiting for the body. */
  readonly begunAt: number;
  readonly uploadMs: number;
}

/** What this process knows of a call that it makes. */
export interface KnownCall {
  readonly scan: CallScan;
  /** The parsed body. */
  readonly parsed: JsonObject;
  readonly model: string;
  /** Bytes of the ticket already reserved for responses; the pipeline's reservations are added. */
  readonly heldBytes: number;
  /** Never empty. */
  readonly candidates: readonly Candidate[];
}

/** How a call ended: `rejected` by the upstream with its own message; an error code of ours; `replayed`: from a stored response. */
export type CallOutcome = "ok" | "rejected" | "client_left" | "replayed" | ErrorCode;

/** Facts about a finished call, reported exactly once for every call that reached the pipeline. */
export interface CallEnd {
  readonly id: string;
  readonly caller: InferenceCaller;
  readonly dialect: Dialect;
  readonly outcome: CallOutcome;
  /** As sent to the client; null if an error was sent in another form, or nothing at all. */
  readonly status: number | null;
  readonly stream: boolean;
  /** As the caller named it, or the default; null if the call failed before it was known. */
  readonly model: string | null;
  /** The upstream that responded or was tried last; null if none. */
  readonly upstreamId: string | null;
  /** Null if nothing was generated, as far as known. */
  readonly usage: TokenUsage | null;
  /** Whether the usage is our estimate rather than the upstream's. */
  readonly estimated: boolean;
  /** The charge in nano-dollars. */
  readonly cost: number;
  /** Number of requests sent to upstreams. */
  readonly attempts: number;
  /** Time spent in this host before the response head; null if no response started. */
  readonly overheadMs: number | null;
  /** Since the call's start; null if no token arrived or the response was not a stream. */
  readonly firstTokenMs: number | null;
  readonly durationMs: number;
}
