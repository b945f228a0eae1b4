import { CONVERTERS, DIALECT_SPECS } from "../dialect-specs.ts";
import type { Dialect } from "./dialect.ts";

/**
 * @param protocols what the upstream speaks.
 * @returns the dialect to call it in: the caller's, otherwise the first that the call can be converted to; null if there is none.
 */
export function dialectAt(protocols: readonly Dialect[], dialect: Dialect): Dialect | null {
  if (protocols.includes(dialect)) return dialect;
  return protocols.find((spoken) => CONVERTERS[dialect][spoken] !== null) ?? null;
}

/** Whether an upstream that speaks these is called in a dialect in which it may store responses and run tools. */
export function isStatefulAt(protocols: readonly Dialect[], dialect: Dialect): boolean {
  const spoken = dialectAt(protocols, dialect);
  return spoken !== null && DIALECT_SPECS[spoken].stateful;
}
