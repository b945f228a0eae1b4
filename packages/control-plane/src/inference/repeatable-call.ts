import { createHash } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { DomainError } from "@fairlead/protocol/errors";
import type { Logger } from "pino";
import type { AnswerClaim, AnswerService, Repeat } from "../answers/answer-service.ts";
import type { Exchange } from "./answer.ts";
import { callerId } from "./caller.ts";
import { DIALECT_PATH } from "./dialect.ts";
import { HttpSink } from "./http-sink.ts";
import type { InferenceCall } from "./inference-call.ts";
import { KeepingSink } from "./keeping-sink.ts";
import type { InferencePipeline } from "./pipeline.ts";

export interface RepeatableDeps {
  readonly pipeline: InferencePipeline;
  readonly log: Logger;
}

/** A call that was begun. */
export interface Begun {
  readonly ended: Promise<unknown>;
}

const HEADER = "Idempotency-Key";
/** Told with an answer that was kept from an earlier call. */
export const REPLAYED: Readonly<Record<string, string>> = { "idempotency-replayed": "true" };

/** @returns null for a call that bears none. @throws DomainError `invalid_request` */
export function idempotencyKeyOf(headers: IncomingHttpHeaders): string | null {
  const key = headers["idempotency-key"];
  if (key === undefined) return null;
  if (typeof key === "string" && /^[\x20-\x7e]{1,255}$/.test(key)) return key;
  throw new DomainError("invalid_request", `\`${HEADER}\` must be 1 to 255 printable ASCII characters.`, {
    param: HEADER,
  });
}

/**
 * What the call was answered before, or the right to run it.
 * @throws DomainError idempotency_mismatch, idempotency_in_progress, already_exists
 */
export function findKept(answers: AnswerService, call: InferenceCall): Promise<Repeat> {
  const { caller, idempotencyKey: key = "" } = call;
  const name = { projectId: caller.projectId, callerId: callerId(caller), key };
  return answers.begin({ ...name, fingerprint: fingerprintOf(call) });
}

/** Runs a call whose answer is kept if it goes well: whatever failed may be sent again. */
export async function beginRepeatable(
  { pipeline, log }: RepeatableDeps,
  claim: AnswerClaim,
  { call, exchange }: { readonly call: InferenceCall; readonly exchange: Exchange },
): Promise<Begun> {
  const onKeepFailed = (error: unknown): void => {
    log.error({ requestId: exchange.requestId, err: error }, "an answer could not be kept for repeats of its call");
  };
  try {
    const { ended } = await pipeline.start(call, new KeepingSink(new HttpSink(exchange), claim, onKeepFailed));
    return { ended: ended.finally(() => claim.release()) };
  } catch (error) {
    claim.release();
    throw error;
  }
}

function fingerprintOf({ dialect, body }: InferenceCall): string {
  const hash = createHash("sha256").update(`${DIALECT_PATH[dialect]}\n`);
  for (const piece of body) hash.update(piece);
  return hash.digest("hex");
}
