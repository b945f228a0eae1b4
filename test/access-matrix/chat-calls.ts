import type { Call, MakeCall } from "./call.ts";

/** How the routes of chats are called: each with a session of the caller's own. */

const chat =
  (rest: string, more: Omit<Call, "path"> = {}): MakeCall =>
  ({ projectId }) => ({ path: `/v1/chat/${rest}`, headers: { "service-project-id": projectId }, ...more });

const ownSession =
  (rest = "", more: Omit<Call, "path"> = {}): MakeCall =>
  async (world, caller) => ({
    path: `/v1/chat/sessions/${await world.newChatSession(caller)}${rest}`,
    headers: { "service-project-id": world.projectId },
    ...more,
  });

/** Opens a session, and asks no model. */
const newSession = { body: { messages: [{ role: "user", content: "/new" }], stream: true } };

export const CHAT_CALLS: Readonly<Record<string, MakeCall>> = {
  "POST /v1/chat/completions": chat("completions", newSession),
  "GET /v1/chat/history": chat("history"),
  "POST /v1/chat/responses": chat("responses", newSession),
  "GET /v1/chat/sessions": chat("sessions?query=anything"),
  "DELETE /v1/chat/sessions/{id}": ownSession(),
  "DELETE /v1/chat/sessions/{id}/turns/{turnId}": ownSession("/turns/trn_none", { letIn: ["no turns"] }),
  "GET /v1/chat/sessions/{id}": ownSession(),
  "PATCH /v1/chat/sessions/{id}": ownSession("", { body: { title: "Matrix" } }),
  "GET /v1/chat/sessions/{id}/export": ownSession("/export"),
  "GET /v1/chat/sessions/{id}/messages": ownSession("/messages"),
  "POST /v1/chat/sessions/{id}:regenerate": ownSession(":regenerate", {
    body: {},
    letIn: ["no question to answer again"],
  }),
  "POST /v1/chat/sessions/{id}:stop": ownSession(":stop", { body: {} }),
};
