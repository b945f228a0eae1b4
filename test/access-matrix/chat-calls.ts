import type { Call, MakeCall } from "./call.ts";

/** How the routes of chats are called. Sessions are a person's own, so whoever is let in finds none under this id. */

const NO_SESSION = { letIn: ['"code":"session_not_found"'] };

const chat =
  (rest: string, more: Omit<Call, "path"> = {}): MakeCall =>
  ({ projectId }) => ({ path: `/v1/chat/${rest}`, headers: { "service-project-id": projectId }, ...more });

const unknown = (rest = "", more: Omit<Call, "path"> = {}): MakeCall =>
  chat(`sessions/ses_matrix${rest}`, { ...NO_SESSION, ...more });

/** Opens a session, and asks no model. */
const newSession = { body: { messages: [{ role: "user", content: "/new" }], stream: true } };

export const CHAT_CALLS: Readonly<Record<string, MakeCall>> = {
  "POST /v1/chat/completions": chat("completions", newSession),
  "GET /v1/chat/history": chat("history"),
  "POST /v1/chat/responses": chat("responses", newSession),
  "GET /v1/chat/sessions": chat("sessions?query=anything"),
  "DELETE /v1/chat/sessions/{id}": unknown(),
  "GET /v1/chat/sessions/{id}": unknown(),
  "PATCH /v1/chat/sessions/{id}": unknown("", { body: { title: "Matrix" } }),
  "GET /v1/chat/sessions/{id}/export": unknown("/export"),
  "GET /v1/chat/sessions/{id}/messages": unknown("/messages"),
  "POST /v1/chat/sessions/{id}:regenerate": unknown(":regenerate", { body: {} }),
  "POST /v1/chat/sessions/{id}:stop": unknown(":stop", { body: {} }),
};
