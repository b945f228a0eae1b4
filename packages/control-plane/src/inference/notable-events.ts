import type { Dialect } from "./dialect.ts";

/** Finding, without parsing, the few events that tell more than a piece of the answer. */

/** Members that are read of such an event. */
export const READ_MEMBERS: Readonly<Record<Dialect, readonly string[]>> = {
  chat: ["usage", "error", "choices", "message", "code", "type"],
  responses: [
    "type",
    "error",
    "message",
    "code",
    "response.usage",
    "response.id",
    "response.model",
    "response.created_at",
  ],
};

const USAGE = Buffer.from('"usage"');
const NULL = Buffer.from(":null");

/** Each stands in events of its kind, and in a caller's own words only with its quotes escaped. */
const SIGNS: Readonly<Record<Dialect, readonly Buffer[]>> = {
  chat: ['"error"', "[DONE]", "event:"].map((text) => Buffer.from(text)),
  // The first event of a response has the member `error` too.
  responses: ['"error"', '"response.completed"', '"response.incomplete"', '"response.failed"', "event: error"].map(
    (text) => Buffer.from(text),
  ),
};

/** Whether some event of these may tell of usage, an error, a beginning or an end. */
export function isNotable(dialect: Dialect, bytes: Buffer): boolean {
  for (const sign of SIGNS[dialect]) if (bytes.includes(sign)) return true;
  return dialect === "chat" && tellsUsage(bytes);
}

/** Many upstreams send `"usage":null` with every chunk. */
function tellsUsage(bytes: Buffer): boolean {
  let at = bytes.indexOf(USAGE);
  while (at !== -1) {
    const end = at + USAGE.length;
    if (!NULL.equals(bytes.subarray(end, end + NULL.length))) return true;
    at = bytes.indexOf(USAGE, end);
  }
  return false;
}
