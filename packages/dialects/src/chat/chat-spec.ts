import { errorBody } from "@fairlead/protocol/errors";
import { OPENAI_MEMBERS } from "../calls/call-members.ts";
import { errorForChat } from "../convert/upstream-error.ts";
import type { DialectSpec } from "../dialect-spec.ts";
import { chatEvents } from "./chat-events.ts";
import { chatOperation } from "./chat-operation.ts";
import { completionAsStream } from "./whole-completion.ts";

/** `POST /v1/chat/completions`. */
export const chatSpec: DialectSpec = {
  path: "/chat/completions",
  operation: chatOperation,
  request: {
    members: OPENAI_MEMBERS,
    outputLimits: { known: ["max_tokens", "max_completion_tokens"], everywhere: ["max_tokens"] },
    usageOnRequest: true,
    referringMember: null,
  },
  usage: { input: "prompt_tokens", output: "completion_tokens" },
  events: chatEvents,
  stateful: false,
  wholeAsStream: completionAsStream,
  failureEvents: ({ errorTold, requestId }, error) =>
    errorTold ? "" : `data: ${JSON.stringify(errorBody(error, requestId))}\n\n`,
  nameError: errorForChat,
};
