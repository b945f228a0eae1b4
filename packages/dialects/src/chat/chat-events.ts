import type { EventFacts, EventSpec } from "../dialect-spec.ts";
import type { EventReader } from "../events/event-reader.ts";
import { holdsAnyOf, indexOrEnd } from "../json/byte-search.ts";

const USAGE = Buffer.from('"usage"');
const NULL = Buffer.from(":null");
const QUOTE = 0x22;
const CLOSE_BRACE = 0x7d;
/** How most deltas begin. */
const CONTENT = Buffer.from('{"content":"');
/** A delta's text, as against its role, its index or its type. */
const DELTA_TEXT = /"(?:content|reasoning_content|reasoning|refusal|arguments|name)"\s*:\s*"[^"]/;

/** Each is in events of its kind, and in a caller's own words only with its quotes escaped. */
const hasSign = holdsAnyOf(['"error"', "[DONE]", "event:"]);

export const chatEvents: EventSpec = {
  isNotable: (bytes) => hasSign(bytes) || hasUsage(bytes),
  members: ["usage", "error", "choices", "message", "code", "type"],
  read: readChunk,
  hasHead: false,
  numbered: false,
  doneEnds: true,
  errorEnds: true,
  deltaEnd: (bytes, start) => indexOrEnd(bytes, CLOSE_BRACE, start),
  deltaTextBytes,
};

/** Many upstreams send `"usage":null` with every chunk. */
function hasUsage(bytes: Buffer): boolean {
  let at = bytes.indexOf(USAGE);
  while (at !== -1) {
    const end = at + USAGE.length;
    if (!NULL.equals(bytes.subarray(end, end + NULL.length))) return true;
    at = bytes.indexOf(USAGE, end);
  }
  return false;
}

function readChunk({ isDone, members }: EventReader): EventFacts {
  if (isDone) return { end: "done" };
  const usage = members.value("usage");
  if (usage === undefined || usage === null) return {};
  const choices = members.text("choices");
  return { usage, onlyUsage: choices === undefined || choices?.replaceAll(/\s/g, "") === "[]" };
}

/** @returns 0 for a delta without text: some upstreams repeat the role in each, or send empty ones. */
function deltaTextBytes(bytes: Buffer, start: number, end: number): number {
  const text = start + CONTENT.length;
  if (text >= end) return 0;
  if (bytes[text] !== QUOTE && isContentAt(bytes, start)) return end - text - 1;
  const found = DELTA_TEXT.exec(bytes.toString("latin1", start, end));
  return found === null ? 0 : end - start - found.index - found[0].length;
}

function isContentAt(bytes: Buffer, start: number): boolean {
  for (let n = 0; n < CONTENT.length; n++) if (bytes[start + n] !== CONTENT[n]) return false;
  return true;
}
