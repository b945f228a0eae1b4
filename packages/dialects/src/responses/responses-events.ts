import type { EventFacts, EventSpec } from "../dialect-spec.ts";
import type { EventReader } from "../events/event-reader.ts";
import type { ResponseIdentity } from "../events/stream-failure.ts";
import { holdsAnyOf, indexOrEnd } from "../json/byte-search.ts";
import type { MemberReader } from "../json/member-reader.ts";

const QUOTE = 0x22;
const COMPLETE = new Set<unknown>(["response.completed", "response.incomplete"]);

export const responsesEvents: EventSpec = {
  // The first event of a response has the member `error` too.
  isNotable: holdsAnyOf([
    '"error"',
    '"response.completed"',
    '"response.incomplete"',
    '"response.failed"',
    "event: error",
  ]),
  members: [
    "type",
    "error",
    "message",
    "code",
    "response.usage",
    "response.id",
    "response.model",
    "response.created_at",
  ],
  read: readEvent,
  hasHead: true,
  numbered: true,
  doneEnds: false,
  errorEnds: false,
  // A delta is a text.
  deltaEnd: (bytes, start) => indexOrEnd(bytes, QUOTE, indexOrEnd(bytes, QUOTE, start) + 1),
  deltaTextBytes: (_bytes, start, end) => end - start - 1,
};

function readEvent({ members }: EventReader): EventFacts {
  return { usage: members.value("response.usage"), end: endIn(members.value("type")), head: headIn(members) };
}

function endIn(type: unknown): "complete" | "failed" | null {
  if (type === "response.failed") return "failed";
  return COMPLETE.has(type) ? "complete" : null;
}

function headIn(members: MemberReader): ResponseIdentity | null {
  const [id, model, createdAt] = ["response.id", "response.model", "response.created_at"].map((path) =>
    members.value(path),
  );
  if (typeof id !== "string") return null;
  return {
    id,
    model: typeof model === "string" ? model : "",
    createdAt: typeof createdAt === "number" ? createdAt : 0,
  };
}
