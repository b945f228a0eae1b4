import { z } from "zod";

/** Chat sessions and messages on the wire (docs/interface.md §2). Times are RFC 3339, UTC, milliseconds. */

export const chatSessionSchema = z
  .object({
    id: z.string(),
    projectId: z.string(),
    userId: z.string(),
    title: z
      .string()
      .describe("Taken from the first question until a user sets another title. Empty: no question yet."),
    model: z.string().nullable().describe("The model of the last turn. Null: no turn yet."),
    messageCount: z.number().int().describe("The number of user and model messages."),
    metadata: z.record(z.string(), z.string()).describe("Custom metadata set by the client."),
    running: z.boolean().describe("Whether a turn is running. Its partial response is the newest message."),
    createdAt: z.string(),
    updatedAt: z.string().describe("When a turn last started or ended."),
  })
  .meta({
    id: "ChatSession",
    examples: [
      {
        id: "ses_01kc3b6q2v8r5x0m7n4t9w1yza",
        projectId: "prj_01kc3b6q2v8r5x0m7n4t9w1yza",
        userId: "usr_01kc3b6q2v8r5x0m7n4t9w1yzb",
        title: "How do I rotate a key?",
        model: "attic/llama-3.3-70b",
        messageCount: 2,
        metadata: {},
        running: false,
        createdAt: "2026-03-02T09:30:00.000Z",
        updatedAt: "2026-03-02T09:30:07.412Z",
      },
    ],
  });
export type ChatSession = z.infer<typeof chatSessionSchema>;

export const CHAT_ITEM_STATUSES = ["completed", "in_progress", "incomplete", "superseded"] as const;

/** One item of a session: a message, a tool call, its output, or reasoning. */
export const chatMessageSchema = z
  .object({
    id: z.string().describe("As it was streamed."),
    turnId: z.string(),
    position: z.number().int().describe("Increases within the session, possibly with gaps."),
    status: z
      .enum(CHAT_ITEM_STATUSES)
      .describe(
        "`in_progress`: being generated. `incomplete`: stopped or cut off. `superseded`: replaced by regenerating the response.",
      ),
    role: z.string().describe("The author: `user`, `assistant`, or `tool` for the output of a tool call."),
    content: z.string().describe("The text of a message. Empty for other items."),
    item: z.record(z.string(), z.unknown()).describe("The item in the format of the Responses API."),
    usage: z
      .object({
        inputTokens: z.number().int(),
        cachedInputTokens: z.number().int(),
        outputTokens: z.number().int(),
        reasoningTokens: z.number().int(),
      })
      .optional()
      .describe("Usage of the whole turn, on the last item of its response."),
    createdAt: z.string(),
  })
  .meta({
    id: "ChatMessage",
    examples: [
      {
        id: "msg_01kc3b6q2v8r5x0m7n4t9w1yzc",
        turnId: "trn_01kc3b6q2v8r5x0m7n4t9w1yzd",
        position: 1,
        status: "completed",
        role: "user",
        content: "How do I rotate a key?",
        item: {
          type: "message",
          role: "user",
          content: [{ type: "input_text", text: "How do I rotate a key?" }],
        },
        createdAt: "2026-03-02T09:30:00.000Z",
      },
    ],
  });
export type ChatMessage = z.infer<typeof chatMessageSchema>;

/** Messages only (docs/interface.md §2). */
export const historyMessageSchema = z.object({ role: z.string(), content: z.string() }).meta({ id: "HistoryMessage" });
