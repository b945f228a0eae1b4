import type { FastifySchema } from "fastify";
import { z } from "zod";
import { idempotencyHeaders } from "../../access/idempotency/idempotency-key.ts";
import { reference } from "../../http/requests/fields.ts";
import { chatStatusOf } from "../answers/chat-errors.ts";

/** OpenAPI descriptions of turns. */

const tags = ["Chat"];

const projectHeader = reference("The project. The caller must be a member with access.").optional();
const sessionHeader = reference("The session to continue. Absent: the turn starts a new session.").optional();
const turnHeaders = idempotencyHeaders.extend({
  "service-project-id": projectHeader,
  "service-session-id": sessionHeader,
});
export const projectHeaders = z.looseObject({ "service-project-id": projectHeader });

const model = z
  .string()
  .optional()
  .describe(
    "`<provider>/<model>`. Absent: the model last used in the session, otherwise the project's default, otherwise the server's.",
  );
const messages = z
  .array(z.looseObject({}))
  .min(1)
  .describe(
    "The last user message, or the tool outputs after it, is the input of the turn. Earlier messages are ignored.",
  );

const TURN_ERRORS = [
  "unsupported_input",
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

/** Set on every response, once the session is known. */
export const SESSION_HEADER = {
  "Service-Session-Id": {
    description: "The active session.",
    schema: { type: "string", examples: ["ses_01kc3b6q2v8r5x0m7n4t9w1yza"] },
  },
};

const answerHeaders = {
  ...SESSION_HEADER,
  "x-fairlead-cut-items": {
    description: "The number of history items left out because they exceed the model's context. Absent: none.",
    schema: { type: "integer", examples: [12] },
  },
};
const turn = { tags, errors: [...TURN_ERRORS], errorStatus: chatStatusOf, answerHeaders };

/** A stream, or one JSON object. */
const answers = {
  200: {
    description: "The response.",
    content: {
      "text/event-stream": { schema: z.string() },
      "application/json": { schema: z.looseObject({}) },
    },
  },
};

export const createResponse = {
  summary: "Create a turn in a chat session",
  description:
    "Takes the request format of the Responses API; all other fields are forwarded unchanged. The input consists of the stored history and the last user " +
    "turn. The response is stored before its final event is sent. It is streamed unless `stream` is false. A last user message of " +
    "`/new` starts a new session instead. The response header `Service-Session-Id` contains the session ID.",
  operationId: "createChatResponse",
  ...turn,
  headers: turnHeaders,
  body: z.looseObject({ messages, model, stream: z.boolean().optional() }).meta({
    examples: [{ model: "local/tinychat-6m", messages: [{ role: "user", content: "What is the capital of Japan?" }] }],
  }),
  response: answers,
} satisfies FastifySchema;

export const createChatCompletion = {
  summary: "Create a turn in a chat session (Chat Completions format)",
  description:
    "Takes the request format of Chat Completions, with the same sessions and rules as `/v1/chat/responses`. The response is streamed " +
    "if `stream` is true.",
  operationId: "createSessionChatCompletion",
  ...turn,
  headers: turnHeaders,
  body: z.looseObject({ messages, model, stream: z.boolean().optional() }).meta({
    examples: [{ messages: [{ role: "user", content: "And of Korea?" }], stream: true }],
  }),
  response: answers,
} satisfies FastifySchema;

export const sessionParams = z.object({ id: reference("The session ID, `ses_…`.") });

export const regenerateAnswer = {
  summary: "Regenerate the last response of a session",
  description:
    "The previous response is superseded: it is removed from the history and no longer sent to models. The new response has the format of " +
    "`/v1/chat/responses`. The body may set another model and other turn parameters.",
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
    "The partial response stays in the history, and the stream of the turn ends normally. Does nothing if no turn is running.",
  operationId: "stopChatTurn",
  tags,
  errors: ["missing_project_header", "permission_denied", "session_not_found"],
  errorStatus: chatStatusOf,
  headers: projectHeaders,
  params: sessionParams,
  response: { 200: z.object({ stopped: z.boolean().describe("Whether a turn was running.") }) },
} satisfies FastifySchema;
