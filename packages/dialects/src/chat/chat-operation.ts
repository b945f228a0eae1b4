import { CALLED_MODEL, STREAMED } from "../calls/call-operation.ts";
import type { CallOperation } from "../dialect-spec.ts";

export const chatOperation: CallOperation = {
  operationId: "createChatCompletion",
  summary: "Create a chat completion",
  errors: [],
  body: {
    type: "object",
    description: "The format of Chat Completions. All other fields are forwarded unchanged.",
    required: ["messages"],
    properties: {
      model: CALLED_MODEL,
      messages: {
        type: "array",
        minItems: 1,
        items: {
          type: "object",
          required: ["role"],
          properties: { role: { type: "string" }, content: {} },
          additionalProperties: true,
        },
      },
      stream: STREAMED,
    },
    additionalProperties: true,
    examples: [{ model: "local/tinychat-6m", messages: [{ role: "user", content: "What is the capital of Japan?" }] }],
  },
};
