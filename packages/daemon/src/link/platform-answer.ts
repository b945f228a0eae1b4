import { ERROR_CODES, type ErrorCode } from "@fairlead/protocol/errors";
import { z } from "zod";
import { type HttpAnswer, jsonOf, retryAfterMs } from "./http-client.ts";

const errorSchema = z.object({ error: z.object({ code: z.string(), message: z.string() }) });

/** An error response. `code` is null if it did not come from the platform host, but from a proxy for example. */
export class PlatformError extends Error {
  override readonly name = "PlatformError";
  readonly status: number;
  readonly code: ErrorCode | null;
  readonly retryAfterMs: number | null;

  constructor(answer: HttpAnswer) {
    const parsed = errorSchema.safeParse(jsonOf(answer));
    super(parsed.success ? parsed.data.error.message : `the platform host returned ${answer.status}`);
    this.status = answer.status;
    this.retryAfterMs = retryAfterMs(answer.headers);
    this.code = parsed.success && isErrorCode(parsed.data.error.code) ? parsed.data.error.code : null;
  }
}

function isErrorCode(text: string): text is ErrorCode {
  return Object.hasOwn(ERROR_CODES, text);
}

const FOR_GOOD: ReadonlySet<ErrorCode> = new Set([
  "invalid_credential",
  "expired_credential",
  "node_deleted",
  "bootstrap_token_used",
  "permission_denied",
  "not_found",
]);

/** Whether the platform host itself rejected the credential; a 401 from a proxy does not count. */
export function isRefusedForGood(error: unknown): error is PlatformError & { readonly code: ErrorCode } {
  return error instanceof PlatformError && error.code !== null && FOR_GOOD.has(error.code);
}
