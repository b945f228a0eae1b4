import { parseExact } from "./exact-json.ts";

/** @returns what the text says, its numbers exact; `otherwise` for what is no JSON. */
export function jsonOr<T>(text: string, otherwise: T): unknown {
  try {
    return parseExact(text);
  } catch {
    return otherwise;
  }
}
