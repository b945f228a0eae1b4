import { DomainError } from "@fairlead/protocol/errors";
import { z } from "zod";
import type { JsonObject } from "../convert/wire.ts";

/** Reading what came from outside: each part by its schema, each mistake with the path of its field. */

const MAX_PATH = 200;

/** @throws DomainError `invalid_request` with `param`. */
export function parseAt<T>(schema: z.ZodType<T>, value: unknown, path: string): T {
  const result = schema.safeParse(value, {
    error: (issue) => (issue.code === "invalid_type" && issue.input === undefined ? "is missing" : undefined),
  });
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const full = (issue?.path ?? []).reduce<string>((text, part) => `${text}${step(part)}`, path);
  // Its names may be the caller's.
  const param = full.length > MAX_PATH ? `${full.slice(0, MAX_PATH).toWellFormed()}…` : full;
  throw refusal(param, `\`${param}\`: ${issue?.message ?? "is not valid"}.`);
}

const step = (part: PropertyKey): string => (typeof part === "number" ? `[${part}]` : `.${String(part)}`);

export const refusal = (param: string, message: string): DomainError =>
  new DomainError("invalid_request", message, { param });

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** @throws DomainError `invalid_request` with `param`. */
export function objectAt(value: unknown, path: string): JsonObject {
  if (isObject(value)) return value;
  throw refusal(path, `\`${path}\`: ${value === undefined ? "is missing" : "must be an object"}.`);
}

const list = z.array(z.unknown());
const text = z.string();

export const listAt = (value: unknown, path: string): unknown[] =>
  Array.isArray(value) ? value : parseAt(list, value, path);
// Most of a long history is texts.
export const textAt = (value: unknown, path: string): string =>
  typeof value === "string" ? value : parseAt(text, value, path);

/** A copy without some keys. Keys are never assigned: `__proto__` is a key like any other. */
export function without(value: JsonObject, keys: readonly string[]): JsonObject {
  const all = Object.keys(value);
  const left = all.filter((key) => !keys.includes(key));
  if (left.length === all.length) return { ...value };
  return left.length === 0 ? {} : Object.fromEntries(left.map((key) => [key, value[key]]));
}
