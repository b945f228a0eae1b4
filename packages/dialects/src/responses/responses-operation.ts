import { CALLED_MODEL, STREAMED } from "../calls/call-operation.ts";
import type { CallOperation } from "../dialect-spec.ts";

export const responsesOperation: CallOperation = {
  operationId: "createResponse",
  summary: "Create a response",
  errors: ["previous_response_not_found"],
  body: {
    type: "object",
    description:
      "The format of the Responses API. All other fields are forwarded unchanged, or converted (see docs/bridge.md).",
    required: ["input"],
    properties: {
      model: CALLED_MODEL,
      input: {
        anyOf: [
          { type: "string" },
          { type: "array", minItems: 1, items: { type: "object", additionalProperties: true } },
        ],
      },
      stream: STREAMED,
    },
    additionalProperties: true,
    examples: [{ model: "local/tinychat-6m", input: "What is the capital of Japan?" }],
  },
};
