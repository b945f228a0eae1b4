import { DomainError, ERROR_CODES, type ErrorCode, errorBody } from "@fairlead/protocol/errors";
import { statusOf } from "./error-status.ts";

/** Error answers as the OpenAPI document tells of them; both hosts describe theirs with these. */

type Json = Readonly<Record<string, unknown>>;

/** The component `Error`. */
export const ERROR_SCHEMA: Json = {
  type: "object",
  description: "The body of every error answer of both hosts. `docs/errors.md` tells what each code means.",
  required: ["error"],
  properties: {
    error: {
      type: "object",
      required: ["message", "type", "code", "param", "source", "requestId"],
      properties: {
        message: { type: "string", description: "What is wrong and what to do, for people." },
        type: { type: "string", enum: [...new Set(Object.values(ERROR_CODES).map(({ type }) => type))] },
        code: { type: "string", enum: Object.keys(ERROR_CODES) },
        param: { type: ["string", "null"], description: "The field at fault as a path, a header's name, or null." },
        source: { type: "string", enum: ["fairlead", "provider"] },
        requestId: { type: "string", description: "The same as the header `x-request-id`." },
        money: {
          type: "object",
          description: "Of a 402: what is missing. Nano-dollars (10⁻⁹ USD).",
          required: ["neededNanoDollars", "leftNanoDollars", "heldNanoDollars", "resetsAt"],
          properties: {
            neededNanoDollars: { type: "integer", description: "What the call would have to set aside." },
            leftNanoDollars: { type: "integer", description: "What it could: of the balance, or of the key's budget." },
            heldNanoDollars: {
              type: "integer",
              description: "What running calls hold: it comes back, less their costs.",
            },
            resetsAt: { type: ["string", "null"], description: "When the budget starts anew; null: never by itself." },
          },
        },
        missingSecrets: {
          type: "array",
          description: "Of `missing_secrets`: each secret that is to be set.",
          items: {
            type: "object",
            required: ["name", "connectorSlug", "stale"],
            properties: {
              name: { type: "string" },
              connectorSlug: {
                type: ["string", "null"],
                description: "The connector that needs it; null: the agent's guest or config.",
              },
              stale: { type: "boolean", description: "It was set, and the agent's node cannot open it: set it again." },
            },
          },
        },
      },
    },
  },
};

/** The component `RequestId`, a header of every answer. */
export const REQUEST_ID_HEADER: Json = {
  description: "Names this request in the server's log.",
  schema: { type: "string", examples: ["req_01kc3b6q2v8r5x0m7n4t9w1yza"] },
};

export const ANSWER_HEADERS: Json = { "x-request-id": { $ref: "#/components/headers/RequestId" } };

interface ErrorTelling {
  /** Where the status of a code is another than elsewhere. */
  readonly status?: ((code: ErrorCode) => number) | undefined;
  readonly headers?: Json;
}

/** @returns by status: the codes that come with it, what they mean, an example of each. */
export function errorResponses(
  codes: readonly ErrorCode[],
  { status = statusOf, headers = ANSWER_HEADERS }: ErrorTelling = {},
): Json {
  const byStatus = Map.groupBy(codes, status);
  const statuses = [...byStatus].toSorted(([a], [b]) => a - b);
  return Object.fromEntries(statuses.map(([number, those]) => [String(number), response(those, headers)]));
}

function response(codes: readonly ErrorCode[], headers: Json): Json {
  const examples = codes.map((code) => [code, { value: errorBody(exampleOf(code), "req_01kc3b6q2v8r5x0m7n4t9w1yza") }]);
  return {
    description: codes.map((code) => `\`${code}\`: ${ERROR_CODES[code].meaning}`).join(" "),
    headers,
    content: {
      "application/json": { schema: { $ref: "#/components/schemas/Error" }, examples: Object.fromEntries(examples) },
    },
  };
}

function exampleOf(code: ErrorCode): DomainError {
  return new DomainError(code, ERROR_CODES[code].meaning, code === "invalid_request" ? { param: "name" } : {});
}

/** The component `OAuthError`. */
export const OAUTH_ERROR_SCHEMA: Json = {
  type: "object",
  description: "The body of error answers of the OAuth endpoints, as RFC 6749 §5.2 has it.",
  required: ["error"],
  properties: {
    error: {
      type: "string",
      description: "`invalid_grant`, `authorization_pending`… as the OAuth standards name them.",
    },
    error_description: { type: "string", description: "For the developer of the client." },
  },
};

/** By status, of every OAuth endpoint. */
export const OAUTH_ERROR_RESPONSES: Json = {
  "400": oauthResponse("The request or its grant is refused: `error` says why.", "invalid_grant"),
  "429": oauthResponse(
    "Too many calls from this address; `retry-after` says when to come back.",
    "temporarily_unavailable",
  ),
  "500": oauthResponse("Fairlead's own fault; the log has the request id.", "server_error"),
  "503": oauthResponse(
    "Fairlead cannot answer this just now. Nothing was refused: try again.",
    "temporarily_unavailable",
  ),
};

function oauthResponse(description: string, error: string): Json {
  const value = { error, error_description: description };
  return {
    description,
    headers: ANSWER_HEADERS,
    content: { "application/json": { schema: { $ref: "#/components/schemas/OAuthError" }, example: value } },
  };
}
