import type { BridgeCall } from "./bridge/bridge-call.ts";
import { type ConvertedCall, convertCall, type OnOutput } from "./bridge/conversion.ts";
import { parseExact } from "./bridge/exact-json.ts";
import { isObject } from "./bridge/parse.ts";
import type { CallerItems } from "./recent-items.ts";
import type { SubmittedBody } from "./submitted-body.ts";
import { BYTES_PER_TOKEN } from "./token-usage.ts";

export interface ConvertedBody extends ConvertedCall {
  /** An estimate of what the body refers to, beside what it holds. */
  readonly referredTokens: number;
}

/**
 * The one place where a call's body is parsed.
 * @throws DomainError `malformed_json` for faults deeper than the scan looks; those of `convertCall`.
 */
export function convertBody({ bytes, dialect }: SubmittedBody, call: BridgeCall, recent: CallerItems): ConvertedBody {
  const body = parseExact(decode(bytes));
  if (dialect === "chat" || !isObject(body)) return { ...convertCall({ dialect, body }, call), referredTokens: 0 };
  const { input, found } = resolve(body["input"], recent);
  const onOutput: OnOutput | null = body["store"] === false ? null : (items) => recent.remember(items);
  const converted = convertCall({ dialect, body: { ...body, input }, ...(onOutput ? { onOutput } : {}) }, call);
  return {
    ...converted,
    referredTokens: found.length === 0 ? 0 : Math.ceil(JSON.stringify(found).length / BYTES_PER_TOKEN),
  };
}

/** What cannot be found stays as it is, and is refused by name. */
function resolve(input: unknown, recent: CallerItems): { readonly input: unknown; readonly found: readonly unknown[] } {
  const found: unknown[] = [];
  if (!Array.isArray(input)) return { input, found };
  const items = input.map((item: unknown) => {
    if (!isObject(item) || item["type"] !== "item_reference" || typeof item["id"] !== "string") return item;
    const known = recent.find(item["id"]);
    if (known !== undefined) found.push(known);
    return known ?? item;
  });
  return { input: items, found };
}

/** Without the byte order mark that some clients begin with. */
function decode(bytes: readonly Buffer[]): string {
  return new TextDecoder().decode(Buffer.concat(bytes));
}
