import type { FastifySchema } from "fastify";
import { z } from "zod";
import { reference } from "../http/fields.ts";
import { idempotencyHeaders } from "../idempotency/idempotency-key.ts";
import { chatStatusOf } from "./chat-errors.ts";

/** What the API document says of turns. */

const tags = ["Chat"];

const projectHeader = reference("The project; the caller must be a member with access.").optional();
const sessionHeader = reference("The session to go on with. Absent: the turn begins a new one.").optional();
const turnHeaders = idempotencyHeaders.extend({
  "service-project-id": projectHeader,
  "service-session-id": sessionHeader,
});
export const projectHeaders = z.looseObject({ "service-project-id": projectHeader });

const model = z
  .string()
  .optional()
  .describe("`<provider>/<model>`. Absent: the session's last one, else the project's default, else the server's.");
const messages = z
  .array(z.looseObject({}))
  .min(1)
  .describe("The last user message drives the turn, or tool outputs behind it; earlier messages are ignored.");

const TURN_ERRORS = [
  "missing_project_header",
  "permission_denied",
  "session_not_found",
  "session_busy",
  "idempotency_mismatch",
  "insufficient_balance",
  "held_by_running_calls",
  "rate_limit_exceeded",
  "request_timeout",
  "not_configured",
  "overloaded",
  "upstream_failed",
  "upstream_rejected_credentials",
  "upstream_timeout",
  "no_running_engine",
] as const;

/** Set on every answer and every error from the moment on at which the session is known. */
export const SESSION_HEADER = {
  "Service-Session-Id": {
    description: "The active session.",
    schema: { type: "string", examples: ["ses_01kc3b6q2v8r5x0m7n4t9w1yza"] },
  },
};

const answerHeaders = {
  ...SESSION_HEADER,
  "x-fairlead-cut-items": {
    description: "How many items of the history did not fit into the model's context. Absent: none.",
    schema: { type: "integer", examples: [12] },
  },
};
const turn = { tags, errors: [...TURN_ERRORS], errorStatus: chatStatusOf, answerHeaders };

/** A stream, or one JSON object. */
const answers = {
  200: {
    description: "The answer.",
    content: {
      "text/event-stream": { schema: z.string() },
      "application/json": { schema: z.looseObject({}) },
    },
  },
};

export const createResponse = {
  summary: "Take a turn in a chat session",
  description:
    "Responses' own form; every other field is forwarded as submitted. The input is built of the stored history and the last user " +
    "turn, and the answer is stored before its end is told. It comes as events, unless `stream` is false. The last user text " +
    "`/new` begins a new session instead. The header `Service-Session-Id` of the answer names the session.",
  operationId: "createChatResponse",
  ...turn,
  headers: turnHeaders,
  body: z.looseObject({ messages, model, stream: z.boolean().optional() }).meta({
    examples: [{ model: "local/tinychat-6m", messages: [{ role: "user", content: "What is the capital of Japan?" }] }],
  }),
  response: answers,
} satisfies FastifySchema;

export const createChatCompletion = {
  summary: "Take a turn in a chat session, in the chat dialect",
  description:
    "Chat completions' own form, with the same sessions and the same rules as `/v1/chat/responses`. The answer comes as events " +
    "where `stream` is true.",
  operationId: "createSessionChatCompletion",
  ...turn,
  headers: turnHeaders,
  body: z.looseObject({ messages, model, stream: z.boolean().optional() }).meta({
    examples: [{ messages: [{ role: "user", content: "And of Korea?" }], stream: true }],
  }),
  response: answers,
} satisfies FastifySchema;

export const sessionParams = z.object({ id: reference("The session's id, `ses_…`.") });

export const regenerateAnswer = {
  summary: "Answer the last question of a session again",
  description:
    "The answer that it had is superseded: out of the history and of what models are given. The new one comes as that of " +
    "`/v1/chat/responses`. The body may name another model, and whatever a turn may.",
  operationId: "regenerateChatAnswer",
  ...turn,
  headers: projectHeaders,
  params: sessionParams,
  body: z
    .looseObject({ model, stream: z.boolean().optional() })
    .nullable()
    .meta({ examples: [{ model: "local/tinychat-6m" }] }),
  response: answers,
} satisfies FastifySchema;

export const stopTurn = {
  summary: "Stop the running turn of a session",
  description:
    "What was answered so far stays in the history, and the stream of the turn ends properly. Nothing where no turn runs.",
  operationId: "stopChatTurn",
  tags,
  errors: ["missing_project_header", "permission_denied", "session_not_found"],
  errorStatus: chatStatusOf,
  headers: projectHeaders,
  params: sessionParams,
  response: { 200: z.object({ stopped: z.boolean().describe("Whether a turn ran.") }) },
} satisfies FastifySchema;
