import type { ErrorCode } from "@fairlead/protocol/errors";
import { ANSWER_HEADERS, errorResponses } from "../http/error-responses.ts";

type Json = Readonly<Record<string, unknown>>;

const ALWAYS: readonly ErrorCode[] = ["invalid_credential", "expired_credential", "internal", "unavailable"];
const ROUTED: readonly ErrorCode[] = ["invalid_request", "model_not_allowed", "model_not_found", "no_running_engine"];
const CALL: readonly ErrorCode[] = [
  "insufficient_balance",
  "key_budget_exceeded",
  "agent_budget_exceeded",
  "held_by_running_calls",
  "idempotency_mismatch",
  "idempotency_in_progress",
  "already_exists",
  "rate_limit_exceeded",
  "not_configured",
  "request_too_large",
  "unsupported_media_type",
  "request_timeout",
  "overloaded",
  "upstream_failed",
  "upstream_rejected_credentials",
  "upstream_timeout",
];

const modelName: Json = { type: "string", description: "`<provider>/<model>`", examples: ["local/tinychat-6m"] };
const calledModel: Json = { ...modelName, description: "`<provider>/<model>`; where it is absent, the default model." };
const streamed: Json = { type: "boolean", description: "The answer comes as server-sent events." };

const nanoDollars: Json = { type: "integer", description: "Nano-dollars." };
const prices: Json = {
  type: "object",
  description: "For a million tokens, and for a call; only where they are known.",
  required: ["input", "cached_input", "output", "per_request"],
  properties: { input: nanoDollars, cached_input: nanoDollars, output: nanoDollars, per_request: nanoDollars },
};

const modelEntry: Json = {
  type: "object",
  required: ["id", "object", "created", "owned_by"],
  properties: {
    id: modelName,
    object: { type: "string", enum: ["model"] },
    created: { type: "integer", description: "Unix seconds." },
    owned_by: { type: "string", description: "The provider, a node's identifier, `nodes` or `alias`." },
    context_length: { type: "integer", description: "Tokens, input and output together; only where it is known." },
    max_output_tokens: { type: "integer", description: "Only where it is known." },
    prices,
  },
};

const chatBody: Json = {
  type: "object",
  description: "Chat completions' own form. Every other field is forwarded as submitted.",
  required: ["messages"],
  properties: {
    model: calledModel,
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
    stream: streamed,
  },
  additionalProperties: true,
  examples: [{ model: "local/tinychat-6m", messages: [{ role: "user", content: "What is the capital of Japan?" }] }],
};

const responsesBody: Json = {
  type: "object",
  description: "Responses' own form. Every other field is forwarded as submitted, or converted (docs/bridge.md).",
  required: ["input"],
  properties: {
    model: calledModel,
    input: {
      anyOf: [
        { type: "string" },
        { type: "array", minItems: 1, items: { type: "object", additionalProperties: true } },
      ],
    },
    stream: streamed,
  },
  additionalProperties: true,
  examples: [{ model: "local/tinychat-6m", input: "What is the capital of Japan?" }],
};

const json = (schema: Json): Json => ({ "application/json": { schema } });
const answer = (content: Json, headers: Json): Json => ({ description: "The answer.", headers, content });

const limitHeader = (description: string, example: string): Json => ({
  description: `${description} The nearer of the key's (or the agent's) limit and the project's; only where there is one, else as the upstream told it.`,
  schema: { type: "string", examples: [example] },
});

/** On whatever is answered to a credential that is good. */
const LIMITED_HEADERS: Json = {
  ...ANSWER_HEADERS,
  "x-ratelimit-limit-requests": limitHeader("Calls in a minute.", "60"),
  "x-ratelimit-remaining-requests": limitHeader("How many of them are left.", "59"),
  "x-ratelimit-reset-requests": limitHeader("When all of them are there again.", "61s"),
  "x-ratelimit-limit-tokens": limitHeader("Input and output tokens in a minute.", "100000"),
  "x-ratelimit-remaining-tokens": limitHeader("How many of them are left.", "98200"),
  "x-ratelimit-reset-tokens": limitHeader("When all of them are there again.", "61s"),
};

const CALL_HEADERS: Json = {
  ...LIMITED_HEADERS,
  "x-fairlead-attempts": {
    description: "How often the call was sent to upstreams; more than 1 after retries.",
    schema: { type: "integer", examples: [1] },
  },
  "idempotency-replayed": {
    description: "`true` on an answer that was kept from an earlier call with the same `Idempotency-Key`.",
    schema: { type: "string", enum: ["true"] },
  },
  "x-fairlead-upstream": {
    description: "Who answered: a provider's name, or `node:` and a node's identifier.",
    schema: { type: "string", examples: ["node:local"] },
  },
  "x-fairlead-overhead-ms": {
    description:
      "What the call cost on this host until the answer's head, without waiting for the body and for upstreams.",
    schema: { type: "number", examples: [0.42] },
  },
};

const IDEMPOTENCY_KEY: Json = {
  name: "Idempotency-Key",
  in: "header",
  required: false,
  description:
    "Any text of your choice, new for every new call: then the call is made once, and for 24 hours a repeat answers what the first " +
    "call answered. For calls that are not streamed.",
  schema: { type: "string", minLength: 1, maxLength: 255 },
};

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly errors: readonly ErrorCode[];
  readonly content: Json;
  readonly headers?: Json;
}

function operation({ errors, content, headers = LIMITED_HEADERS, ...words }: Operation, rest: Json = {}): Json {
  return {
    ...words,
    tags: ["Inference"],
    security: [{ projectKey: [] }, { workerToken: [] }],
    ...rest,
    responses: {
      "200": answer(content, headers),
      ...errorResponses([...ALWAYS, ...errors], { headers: LIMITED_HEADERS }),
    },
  };
}

/**
 * Interface §4.5, for the API document; this host has no framework that could be asked. The paths stand below `/v1` of their own
 * server: the platform host has a `/v1/chat/completions` too, and a document can name a path only once.
 */
export function inferencePaths(modelsUrl: string): Json {
  const servers = [{ url: `${modelsUrl}/v1`, description: "Inference host" }];
  const events = { "text/event-stream": { schema: { type: "string" } } };
  return {
    "/chat/completions": {
      servers,
      post: operation(
        {
          operationId: "createChatCompletion",
          summary: "Ask a model",
          errors: [...ROUTED, ...CALL],
          content: { ...json({ type: "object", additionalProperties: true }), ...events },
          headers: CALL_HEADERS,
        },
        { parameters: [IDEMPOTENCY_KEY], requestBody: { required: true, content: json(chatBody) } },
      ),
    },
    "/responses": {
      servers,
      post: operation(
        {
          operationId: "createResponse",
          summary: "Ask a model, in the responses dialect",
          errors: [...ROUTED, ...CALL, "previous_response_not_found"],
          content: { ...json({ type: "object", additionalProperties: true }), ...events },
          headers: CALL_HEADERS,
        },
        { parameters: [IDEMPOTENCY_KEY], requestBody: { required: true, content: json(responsesBody) } },
      ),
    },
    "/models": {
      servers,
      get: operation({
        operationId: "listModels",
        summary: "The models that this key can call just now",
        errors: [],
        content: json({
          type: "object",
          required: ["object", "data"],
          properties: { object: { type: "string", enum: ["list"] }, data: { type: "array", items: modelEntry } },
        }),
      }),
    },
    "/models/{model}": {
      servers,
      parameters: [{ name: "model", in: "path", required: true, schema: modelName }],
      get: operation({
        operationId: "getModel",
        summary: "One model, by name",
        errors: ROUTED,
        content: json(modelEntry),
      }),
    },
  };
}
