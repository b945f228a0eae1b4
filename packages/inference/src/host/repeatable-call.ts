import { createHash } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { DIALECT_SPECS } from "@fairlead/dialects/dialect-specs";
import { DomainError } from "@fairlead/protocol/errors";
import type { Logger } from "pino";
import { callerId } from "../calls/caller.ts";
import type { InferenceCall } from "../calls/inference-call.ts";
import type { InferencePipeline } from "../calls/pipeline.ts";
import type { AnswerClaim, KeptAnswers, Repeat } from "../ports/kept-answers.ts";
import type { Exchange } from "./answer.ts";
import { HttpSink } from "./http-sink.ts";
import { RecordingSink } from "./recording-sink.ts";

export interface RepeatableDeps {
  readonly pipeline: InferencePipeline;
  readonly log: Logger;
}

/** A running call. */
export interface Begun {
  readonly ended: Promise<unknown>;
}

const HEADER = "Idempotency-Key";
/** Set on a response stored by an earlier call. */
export const REPLAYED: Readonly<Record<string, string>> = { "idempotency-replayed": "true" };

/** @returns null for a call without a key. @throws DomainError `invalid_request` */
export function idempotencyKeyOf(headers: IncomingHttpHeaders): string | null {
  const key = headers["idempotency-key"];
  if (key === undefined) return null;
  if (typeof key === "string" && /^[\x20-\x7e]{1,255}$/.test(key)) return key;
  throw new DomainError("invalid_request", `\`${HEADER}\` must be 1 to 255 printable ASCII characters.`, {
    param: HEADER,
  });
}

/**
 * The stored response, or the right to run the call.
 * @throws DomainError idempotency_mismatch, idempotency_in_progress, already_exists
 */
export function findKept(answers: KeptAnswers, call: InferenceCall): Promise<Repeat> {
  const { caller, idempotencyKey: key = "" } = call;
  const name = { projectId: caller.projectId, callerId: callerId(caller), key };
  return answers.begin({ ...name, fingerprint: fingerprintOf(call) });
}

/** Runs a call and stores a successful response; failed calls can be retried. */
export async function beginRepeatable(
  { pipeline, log }: RepeatableDeps,
  claim: AnswerClaim,
  { call, exchange }: { readonly call: InferenceCall; readonly exchange: Exchange },
): Promise<Begun> {
  const onKeepFailed = (error: unknown): void => {
    log.error({ requestId: exchange.requestId, err: error }, "a response could not be stored for retries of its call");
  };
  try {
    const { ended } = await pipeline.start(call, new RecordingSink(new HttpSink(exchange), claim, onKeepFailed));
    return { ended: ended.finally(() => claim.release()) };
  } catch (error) {
    claim.release();
    throw error;
  }
}

function fingerprintOf({ dialect, body }: InferenceCall): string {
  const hash = createHash("sha256").update(`${DIALECT_SPECS[dialect].path}\n`);
  for (const piece of body) hash.update(piece);
  return hash.digest("hex");
}
