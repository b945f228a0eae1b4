import { MODEL_NAME } from "@fairlead/dialects/calls/call-operation";
import type { Dialect } from "@fairlead/dialects/calls/dialect";
import { DIALECT_SPECS } from "@fairlead/dialects/dialect-specs";
import { ANSWER_HEADERS, errorResponses } from "@fairlead/hosting/errors/error-responses";
import type { ErrorCode } from "@fairlead/protocol/errors";
import { DIALECTS } from "@fairlead/protocol/providers";

type Json = Readonly<Record<string, unknown>>;

const ALWAYS: readonly ErrorCode[] = ["invalid_credential", "expired_credential", "internal", "unavailable"];
const ROUTED: readonly ErrorCode[] = ["invalid_request", "model_not_allowed", "model_not_found", "no_running_engine"];
const CALL: readonly ErrorCode[] = [
  "unsupported_input",
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

const nanoDollars: Json = { type: "integer", description: "Nano-dollars." };
const prices: Json = {
  type: "object",
  description: "Prices per million tokens and per call, where known.",
  required: ["input", "cached_input", "output", "per_request"],
  properties: { input: nanoDollars, cached_input: nanoDollars, output: nanoDollars, per_request: nanoDollars },
};

const modelEntry: Json = {
  type: "object",
  required: ["id", "object", "created", "owned_by"],
  properties: {
    id: MODEL_NAME,
    object: { type: "string", enum: ["model"] },
    created: { type: "integer", description: "Unix seconds." },
    owned_by: { type: "string", description: "The provider, a node's identifier, `nodes` or `alias`." },
    context_length: { type: "integer", description: "Maximum total of input and output tokens, if known." },
    max_output_tokens: { type: "integer", description: "If known." },
    prices,
  },
};

const json = (schema: Json): Json => ({ "application/json": { schema } });
const answer = (content: Json, headers: Json): Json => ({ description: "The response.", headers, content });

const limitHeader = (description: string, example: string): Json => ({
  description: `${description} For the limit closest to being reached, of the key (or agent) and the project. If neither has one, the upstream's value is passed through.`,
  schema: { type: "string", examples: [example] },
});

/** Headers of every response to a valid credential. */
const LIMITED_HEADERS: Json = {
  ...ANSWER_HEADERS,
  "x-ratelimit-limit-requests": limitHeader("Requests per minute.", "60"),
  "x-ratelimit-remaining-requests": limitHeader("Remaining requests.", "59"),
  "x-ratelimit-reset-requests": limitHeader("When the limit is fully available again.", "61s"),
  "x-ratelimit-limit-tokens": limitHeader("Input and output tokens per minute.", "100000"),
  "x-ratelimit-remaining-tokens": limitHeader("Remaining tokens.", "98200"),
  "x-ratelimit-reset-tokens": limitHeader("When the limit is fully available again.", "61s"),
};

const CALL_HEADERS: Json = {
  ...LIMITED_HEADERS,
  "x-fairlead-attempts": {
    description: "The number of attempts sent to upstreams. More than 1 after retries.",
    schema: { type: "integer", examples: [1] },
  },
  "idempotency-replayed": {
    description: "`true` if the response was stored by an earlier call with the same `Idempotency-Key`.",
    schema: { type: "string", enum: ["true"] },
  },
  "x-fairlead-upstream": {
    description: "The upstream that responded: a provider's name, or `node:` and a node's identifier.",
    schema: { type: "string", examples: ["node:local"] },
  },
  "x-fairlead-overhead-ms": {
    description:
      "Time that this host spent on the call up to the response headers, excluding waits for the request body and for upstreams.",
    schema: { type: "number", examples: [0.42] },
  },
};

const IDEMPOTENCY_KEY: Json = {
  name: "Idempotency-Key",
  in: "header",
  required: false,
  description:
    "A unique string of your choice for each new call. The call is made once, and for 24 hours a retry with the same key returns the response of the first " +
    "call. Not supported for streaming calls.",
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

function callOperation(dialect: Dialect): Json {
  const { operationId, summary, errors, body } = DIALECT_SPECS[dialect].operation;
  const content = {
    ...json({ type: "object", additionalProperties: true }),
    "text/event-stream": { schema: { type: "string" } },
  };
  return operation(
    { operationId, summary, errors: [...ROUTED, ...CALL, ...errors], content, headers: CALL_HEADERS },
    { parameters: [IDEMPOTENCY_KEY], requestBody: { required: true, content: json(body) } },
  );
}

/**
 * docs/interface.md §4.5, for the API document. The paths are relative to their own server URL with `/v1`, because the platform host also has
 * `/v1/chat/completions` and a document can contain a path only once.
 */
export function inferencePaths(modelsUrl: string): Json {
  const servers = [{ url: `${modelsUrl}/v1`, description: "Inference host" }];
  return {
    ...Object.fromEntries(
      DIALECTS.map((dialect) => [DIALECT_SPECS[dialect].path, { servers, post: callOperation(dialect) }]),
    ),
    "/models": {
      servers,
      get: operation({
        operationId: "listModels",
        summary: "List the models that this key can call",
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
      parameters: [{ name: "model", in: "path", required: true, schema: MODEL_NAME }],
      get: operation({
        operationId: "getModel",
        summary: "Get a model",
        errors: ROUTED,
        content: json(modelEntry),
      }),
    },
  };
}
