import type { JsonObject } from "../convert/wire.ts";

/** Schemas that the bodies of calls share in the API document. */

export const MODEL_NAME: JsonObject = {
  type: "string",
  description: "`<provider>/<model>`",
  examples: ["local/tinychat-6m"],
};
export const CALLED_MODEL: JsonObject = {
  ...MODEL_NAME,
  description: "`<provider>/<model>`. Absent: the default model.",
};
export const STREAMED: JsonObject = {
  type: "boolean",
  description: "Whether to stream the response as server-sent events.",
};
