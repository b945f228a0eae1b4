import { z } from "zod";

/** Chat sessions and their messages as they stand on the wire (interface §2; design §4). Times are RFC 3339, UTC, milliseconds. */

export const chatSessionSchema = z
  .object({
    id: z.string(),
    projectId: z.string(),
    userId: z.string(),
    title: z.string().describe("Of its first question, until a person gives another. Empty: nothing was asked yet."),
    model: z.string().nullable().describe("That its last turn asked. Null: none did yet."),
    messageCount: z.number().int().describe("Messages of people and models."),
    metadata: z.record(z.string(), z.string()).describe("The client's own."),
    running: z.boolean().describe("Whether a turn runs in it: its answer so far is the newest of its messages."),
    createdAt: z.string(),
    updatedAt: z.string().describe("When a turn last began or ended."),
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

/** One item of a session: what was said, and between it the calls of tools, their outputs and the model's thinking. */
export const chatMessageSchema = z
  .object({
    id: z.string().describe("As it was streamed."),
    turnId: z.string(),
    position: z.number().int().describe("Counts up within the session, with gaps."),
    status: z
      .enum(CHAT_ITEM_STATUSES)
      .describe(
        "`in_progress`: the model still says it. `incomplete`: it was stopped or broke off. `superseded`: it was asked again.",
      ),
    role: z.string().describe("Who said it: `user`, `assistant`, or `tool` for the output of a call."),
    content: z.string().describe("The text of a message; empty for what is none."),
    item: z.record(z.string(), z.unknown()).describe("The item itself, as in the Responses format."),
    usage: z
      .object({
        inputTokens: z.number().int(),
        cachedInputTokens: z.number().int(),
        outputTokens: z.number().int(),
        reasoningTokens: z.number().int(),
      })
      .optional()
      .describe("Of the whole turn, on the last item of its answer."),
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

/** What was said, and nothing else (interface §2). */
export const historyMessageSchema = z.object({ role: z.string(), content: z.string() }).meta({ id: "HistoryMessage" });
