import type { BridgeCall } from "./bridge/bridge-call.ts";
import { type ConvertedCall, convertCall } from "./bridge/conversion.ts";
import { parseExact } from "./bridge/exact-json.ts";
import { isObject } from "./bridge/parse.ts";
import type { CallerItems } from "./recent-items.ts";
import type { SubmittedBody } from "./submitted-body.ts";

/**
 * The one place where a call's body is parsed.
 * @throws DomainError `malformed_json` for faults deeper than the scan looks; those of `convertCall`.
 */
export function convertBody({ bytes, dialect }: SubmittedBody, call: BridgeCall, recent: CallerItems): ConvertedCall {
  const body = parseExact(decode(bytes));
  if (dialect === "chat" || !isObject(body)) return convertCall({ dialect, body }, call);
  const resolved = { ...body, input: resolve(body["input"], recent) };
  const isKept = body["store"] !== false;
  return convertCall(
    { dialect, body: resolved, ...(isKept ? { onOutput: (items) => recent.remember(items) } : {}) },
    call,
  );
}

/** What cannot be found stays as it is, and is refused by name. */
function resolve(input: unknown, recent: CallerItems): unknown {
  if (!Array.isArray(input)) return input;
  return input.map((item: unknown) => {
    if (!isObject(item) || item["type"] !== "item_reference" || typeof item["id"] !== "string") return item;
    return recent.find(item["id"]) ?? item;
  });
}

/** Without the byte order mark that some clients begin with. */
function decode(bytes: readonly Buffer[]): string {
  return new TextDecoder().decode(Buffer.concat(bytes));
}
