import { DIALECT_SPECS } from "../dialect-specs.ts";
import { isObject } from "../json/parse.ts";
import type { Dialect } from "./dialect.ts";
import { noResponse } from "./relayed-answer.ts";
import { failureIn } from "./upstream-failure.ts";

/** Converts a complete response to a stream in the same dialect, for an upstream that did not stream as asked. Pure. */

export interface StreamedAs {
  readonly dialect: Dialect;
  /** Whether the caller did not ask for the usage, where the dialect reports it only on request. */
  readonly hidesUsage: boolean;
}

/** @param body parsed. @returns whole frames, the last included. @throws DomainError for what is no answer. */
export function answerAsStream(body: unknown, { dialect, hidesUsage }: StreamedAs): string {
  if (!isObject(body)) throw noResponse("returned a body that is not a JSON object");
  const failure = failureIn(body["error"]);
  if (failure !== null) throw failure.error;
  return DIALECT_SPECS[dialect].wholeAsStream(body, hidesUsage);
}
