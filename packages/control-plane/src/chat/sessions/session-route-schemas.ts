import { chatMessageSchema, chatSessionSchema, historyMessageSchema } from "@fairlead/protocol/chat";
import { ONE_LINE } from "@fairlead/protocol/values/text";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import { reference } from "../../http/requests/fields.ts";
import { pageQuery } from "../../http/requests/pagination.ts";
import { chatStatusOf } from "../answers/chat-errors.ts";
import { metadataSchema, titleSchema } from "../items/chat-title.ts";
import { projectHeaders, sessionParams } from "./turn-route-schemas.ts";

/** OpenAPI descriptions of stored sessions. */

const shared = { tags: ["Chat"], errorStatus: chatStatusOf, headers: projectHeaders };
const project = ["missing_project_header", "permission_denied"] as const;
const session = [...project, "session_not_found"] as const;

export const getHistory = {
  summary: "Get the messages of a chat session",
  description:
    "Messages of the user and the model, in order. While a turn is running, the last one is its partial response. Empty without a session.",
  operationId: "getChatHistory",
  ...shared,
  errors: [...session],
  querystring: z.object({
    sessionId: reference("The session ID, `ses_…`. Empty or absent: no messages.").optional(),
  }),
  response: { 200: z.object({ messages: z.array(historyMessageSchema) }) },
} satisfies FastifySchema;

export const listSessions = {
  summary: "List your chat sessions",
  description:
    "Your sessions in the project, most recently active first. When searching, a page may contain fewer than `pageSize` sessions, or none, and still not " +
    "be the last one, because long histories are searched in portions.",
  operationId: "listChatSessions",
  ...shared,
  errors: [...project],
  querystring: z.object({
    query: z
      .string()
      .trim()
      .max(200)
      .regex(...ONE_LINE)
      .default("")
      .describe("Only sessions whose title or messages contain this text, ignoring case."),
    ...pageQuery,
  }),
  response: { 200: z.object({ sessions: z.array(chatSessionSchema), nextPageToken: z.string() }) },
} satisfies FastifySchema;

export const getSession = {
  summary: "Get a chat session",
  operationId: "getChatSession",
  ...shared,
  errors: [...session],
  params: sessionParams,
  response: { 200: chatSessionSchema },
} satisfies FastifySchema;

export const updateSession = {
  summary: "Change a chat session",
  description: "Omitted fields are unchanged; `metadata` is replaced as a whole. Does not count as activity.",
  operationId: "updateChatSession",
  ...shared,
  errors: [...session, "project_deleting"],
  params: sessionParams,
  body: z
    .strictObject({
      title: titleSchema.optional().describe("No further question changes the title of the session."),
      metadata: metadataSchema
        .optional()
        .describe("Up to 16 pairs of strings, with keys of up to 64 and values of up to 512 characters."),
    })
    .meta({ examples: [{ title: "Rotating keys", metadata: { folder: "security" } }] }),
  response: { 200: chatSessionSchema },
} satisfies FastifySchema;

export const deleteSession = {
  summary: "Delete a chat session",
  description: "Permanently deletes the session and all of its messages. Stop a running turn first.",
  operationId: "deleteChatSession",
  ...shared,
  errors: [...session, "session_busy", "project_deleting"],
  params: sessionParams,
  response: { 200: z.object({}) },
} satisfies FastifySchema;

export const deleteTurn = {
  summary: "Delete the newest turn of a chat session",
  description:
    "Permanently deletes the last question, its response, and any responses it superseded. The previous turn becomes the newest. `turnId` is the ID on " +
    "its messages. Stop a running turn first.",
  operationId: "deleteChatTurn",
  ...shared,
  errors: [...session, "invalid_request", "session_busy", "project_deleting"],
  params: sessionParams.extend({ turnId: reference("The turn ID, `trn_…`.") }),
  response: { 200: z.object({}) },
} satisfies FastifySchema;

const position = (description: string): z.ZodOptional<z.ZodCoercedNumber> =>
  z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER).optional().describe(description);

const messagesQuery = z.object({
  order: z.enum(["asc", "desc"]).default("asc").describe("`asc`: in chronological order. `desc`: newest first."),
  after: position("Only messages with a higher `position`: those added since."),
  before: position("Only messages with a lower `position`: those before."),
  ...pageQuery,
});
export type MessagesQuery = z.output<typeof messagesQuery>;

export const listMessages = {
  summary: "List the messages of a chat session",
  description:
    "Includes tool calls, their outputs and the model's reasoning, but not superseded responses. While a turn is running, " +
    "its partial response is the newest message, with status `in_progress`.",
  operationId: "listChatMessages",
  ...shared,
  errors: [...session],
  params: sessionParams,
  querystring: messagesQuery,
  response: { 200: z.object({ messages: z.array(chatMessageSchema), nextPageToken: z.string() }) },
} satisfies FastifySchema;

export const exportSession = {
  summary: "Export a chat session",
  description: "The whole session as one JSON file, including superseded responses.",
  operationId: "exportChatSession",
  ...shared,
  errors: [...session],
  params: sessionParams,
  response: { 200: z.object({ session: chatSessionSchema, messages: z.array(chatMessageSchema) }) },
} satisfies FastifySchema;
