import { chatMessageSchema, chatSessionSchema, historyMessageSchema } from "@fairlead/protocol/chat";
import { ONE_LINE } from "@fairlead/protocol/text";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import { reference } from "../http/fields.ts";
import { pageQuery } from "../http/pagination.ts";
import { chatStatusOf } from "./chat-errors.ts";
import { metadataSchema, titleSchema } from "./chat-title.ts";
import { projectHeaders, sessionParams } from "./turn-route-schemas.ts";

/** What the API document says of stored sessions. */

const shared = { tags: ["Chat"], errorStatus: chatStatusOf, headers: projectHeaders };
const project = ["missing_project_header", "permission_denied"] as const;
const session = [...project, "session_not_found"] as const;

export const getHistory = {
  summary: "Get what was said in a chat session",
  description:
    "Messages of people and models, in order; while a turn runs, its answer so far. Without a session: none.",
  operationId: "getChatHistory",
  ...shared,
  errors: [...session],
  querystring: z.object({
    sessionId: reference("The session's id, `ses_…`. Empty or absent: no messages.").optional(),
  }),
  response: { 200: z.object({ messages: z.array(historyMessageSchema) }) },
} satisfies FastifySchema;

export const listSessions = {
  summary: "List your chat sessions",
  description:
    "Your own in the project, the newest activity first. A page of a search may hold fewer than `pageSize`, even none, and still not " +
    "be the last: a long history is searched in portions.",
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
      .describe("Sessions alone whose title or messages hold this text, in whatever capitals."),
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
  description: "What is absent stays as it is; `metadata` is replaced whole. It counts as no activity.",
  operationId: "updateChatSession",
  ...shared,
  errors: [...session, "project_deleting"],
  params: sessionParams,
  body: z
    .strictObject({
      title: titleSchema.optional().describe("No question names the session any more."),
      metadata: metadataSchema.optional().describe("Up to 16 pairs of texts, of 64 and 512 characters."),
    })
    .meta({ examples: [{ title: "Rotating keys", metadata: { folder: "security" } }] }),
  response: { 200: chatSessionSchema },
} satisfies FastifySchema;

export const deleteSession = {
  summary: "Delete a chat session",
  description: "With all that was said in it, for good. Stop its turn first.",
  operationId: "deleteChatSession",
  ...shared,
  errors: [...session, "session_busy", "project_deleting"],
  params: sessionParams,
  response: { 200: z.object({}) },
} satisfies FastifySchema;

const position = (description: string): z.ZodOptional<z.ZodCoercedNumber> =>
  z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER).optional().describe(description);

const messagesQuery = z.object({
  order: z.enum(["asc", "desc"]).default("asc").describe("`asc`: as they were said. `desc`: the newest first."),
  after: position("Those alone whose `position` is higher: what is new since then."),
  before: position("Those alone whose `position` is lower: what came before."),
  ...pageQuery,
});
export type MessagesQuery = z.output<typeof messagesQuery>;

export const listMessages = {
  summary: "List the messages of a chat session",
  description:
    "With the calls of tools, their outputs and the model's thinking between them; without what was asked again. While a turn runs, " +
    "its answer so far is the newest, `in_progress`.",
  operationId: "listChatMessages",
  ...shared,
  errors: [...session],
  params: sessionParams,
  querystring: messagesQuery,
  response: { 200: z.object({ messages: z.array(chatMessageSchema), nextPageToken: z.string() }) },
} satisfies FastifySchema;

export const exportSession = {
  summary: "Export a chat session",
  description: "The whole session as one JSON file, with what was asked again (`superseded`).",
  operationId: "exportChatSession",
  ...shared,
  errors: [...session],
  params: sessionParams,
  response: { 200: z.object({ session: chatSessionSchema, messages: z.array(chatMessageSchema) }) },
} satisfies FastifySchema;
