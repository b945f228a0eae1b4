import type { Dialect } from "@fairlead/dialects/calls/dialect";
import type { SubmittedBody } from "@fairlead/dialects/calls/submitted-body";
import { dialectAt } from "@fairlead/dialects/calls/upstream-dialect";
import type { BridgeCall } from "@fairlead/dialects/convert/bridge-call";
import type { ConvertedCall, OnOutput } from "@fairlead/dialects/convert/conversion";
import { CONVERTERS, DIALECT_SPECS } from "@fairlead/dialects/dialect-specs";
import { parseExact } from "@fairlead/dialects/json/exact-json";
import { isObject } from "@fairlead/dialects/json/parse";
import { DomainError } from "@fairlead/protocol/errors";
import type { CallerItems } from "../routing/recent-items.ts";

export interface ConvertedBody extends ConvertedCall {
  /** Of the items that the body refers to, beside what it holds. */
  readonly referredBytes: number;
}

export interface UpstreamToConvertFor {
  readonly protocols: readonly Dialect[];
  readonly call: BridgeCall;
  readonly recent: CallerItems;
}

/**
 * The one place where a call's body is parsed, if its maker has not done so.
 * @returns null if the upstream speaks the caller's dialect.
 * @throws DomainError `malformed_json` for faults deeper than the scan looks; `unsupported_input` if there is no converter; those of
 * the converter.
 */
export function convertBody(
  { bytes, dialect, parsed }: SubmittedBody,
  { protocols, call, recent }: UpstreamToConvertFor,
): ConvertedBody | null {
  const spoken = dialectAt(protocols, dialect);
  if (spoken === dialect) return null;
  const convert = spoken === null ? null : CONVERTERS[dialect][spoken];
  if (convert === null) throw notConvertible(dialect);
  const body = parsed ?? parseExact(Buffer.concat(bytes));
  const { referringMember } = DIALECT_SPECS[dialect].request;
  if (referringMember === null || !isObject(body)) return { ...convert({ body }, call), referredBytes: 0 };
  const { input, found } = resolve(body[referringMember], recent);
  const onOutput: OnOutput | null = body["store"] === false ? null : (items) => recent.remember(items);
  const converted = convert({ body: { ...body, [referringMember]: input }, ...(onOutput ? { onOutput } : {}) }, call);
  return {
    ...converted,
    referredBytes: found.length === 0 ? 0 : Buffer.byteLength(JSON.stringify(found)),
  };
}

function notConvertible(dialect: Dialect): DomainError {
  const message = `This model does not take calls of the \`${dialect}\` dialect, and they cannot be converted.`;
  return new DomainError("unsupported_input", message);
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
