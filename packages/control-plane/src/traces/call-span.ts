import type { Attributes } from "@opentelemetry/api";
import { callerId } from "../inference/caller.ts";
import type { CallEnd } from "../inference/inference-call.ts";

/** A call in OpenTelemetry's words for generative AI, and ours where it has none. Never its content. Pure. */

/** Both dialects are `chat` there. */
const OPERATION = "chat";

export function spanName({ model }: Pick<CallEnd, "model">): string {
  return model === null ? OPERATION : `${OPERATION} ${model}`;
}

export function spanAttributes(end: CallEnd): Attributes {
  const { caller, usage, outcome, firstTokenMs } = end;
  return {
    "gen_ai.operation.name": OPERATION,
    "gen_ai.provider.name": end.upstreamId ?? undefined,
    "gen_ai.request.model": end.model ?? undefined,
    "gen_ai.usage.input_tokens": usage?.inputTokens,
    "gen_ai.usage.output_tokens": usage?.outputTokens,
    "gen_ai.usage.cache_read.input_tokens": usage?.cachedInputTokens,
    "http.response.status_code": end.status ?? undefined,
    "error.type": isFailure(end) ? outcome : undefined,
    "fairlead.request_id": end.id,
    "fairlead.project_id": caller.projectId,
    "fairlead.caller_id": callerId(caller),
    "fairlead.dialect": end.dialect,
    "fairlead.stream": end.stream,
    "fairlead.outcome": outcome,
    "fairlead.attempts": end.attempts,
    "fairlead.usage_estimated": end.estimated,
    "fairlead.first_token_ms": firstTokenMs ?? undefined,
    "fairlead.overhead_ms": end.overheadMs ?? undefined,
  };
}

/** A caller that leaves has not failed. */
export function isFailure({ outcome }: Pick<CallEnd, "outcome">): boolean {
  return outcome !== "ok" && outcome !== "client_left";
}
