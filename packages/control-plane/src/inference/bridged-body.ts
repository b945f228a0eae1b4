import type { BridgeCall } from "./bridge/bridge-call.ts";
import { type ConvertedCall, convertCall } from "./bridge/conversion.ts";
import { parseExact } from "./bridge/exact-json.ts";
import type { SubmittedBody } from "./submitted-body.ts";

/**
 * The one place where a call's body is parsed.
 * @throws DomainError `malformed_json` for faults deeper than the scan looks; those of `convertCall`.
 */
export function convertBody({ bytes, dialect }: SubmittedBody, call: BridgeCall): ConvertedCall {
  return convertCall(dialect, parseExact(decode(bytes)), call);
}

/** Without the byte order mark that some clients begin with. */
function decode(bytes: readonly Buffer[]): string {
  return new TextDecoder().decode(Buffer.concat(bytes));
}
