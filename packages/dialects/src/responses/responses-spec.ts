import { OPENAI_MEMBERS } from "../calls/call-members.ts";
import { errorForResponses } from "../convert/upstream-error.ts";
import type { DialectSpec } from "../dialect-spec.ts";
import { responsesEvents } from "./responses-events.ts";
import { responsesFailure } from "./responses-failure.ts";
import { responsesOperation } from "./responses-operation.ts";
import { responseAsStream } from "./whole-response.ts";

/** `POST /v1/responses`. */
export const responsesSpec: DialectSpec = {
  path: "/responses",
  operation: responsesOperation,
  request: {
    members: OPENAI_MEMBERS,
    outputLimits: { known: ["max_output_tokens"], everywhere: ["max_output_tokens"] },
    usageOnRequest: false,
    referringMember: "input",
  },
  usage: { input: "input_tokens", output: "output_tokens" },
  events: responsesEvents,
  stateful: true,
  wholeAsStream: responseAsStream,
  failureEvents: responsesFailure,
  nameError: errorForResponses,
};
