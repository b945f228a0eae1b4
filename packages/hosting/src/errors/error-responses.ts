import { DomainError, ERROR_CODES, type ErrorCode, errorBody } from "@fairlead/protocol/errors";
import { statusOf } from "./error-status.ts";

/** Error responses in the OpenAPI documents of both hosts. */

type Json = Readonly<Record<string, unknown>>;

/** The component `Error`. */
export const ERROR_SCHEMA: Json = {
  type: "object",
  description: "The body of every error response of both hosts. `docs/errors.md` describes each code.",
  required: ["error"],
  properties: {
    error: {
      type: "object",
      required: ["message", "type", "code", "param", "source", "requestId"],
      properties: {
        message: { type: "string", description: "What is wrong and what to do about it, in words." },
        type: { type: "string", enum: [...new Set(Object.values(ERROR_CODES).map(({ type }) => type))] },
        code: { type: "string", enum: Object.keys(ERROR_CODES) },
        param: {
          type: ["string", "null"],
          description: "The path of the invalid field, the name of a header, or null.",
        },
        source: { type: "string", enum: ["fairlead", "provider"] },
        requestId: { type: "string", description: "The value of the header `x-request-id`." },
        errors: {
          type: "array",
          description: "If the input is validated field by field: every problem, the one of `param` first.",
          items: {
            type: "object",
            required: ["param", "message"],
            properties: { param: { type: "string" }, message: { type: "string" } },
          },
        },
        money: {
          type: "object",
          description: "For a 402: the amounts, in nano-dollars (10⁻⁹ USD).",
          required: ["neededNanoDollars", "leftNanoDollars", "heldNanoDollars", "resetsAt"],
          properties: {
            neededNanoDollars: { type: "integer", description: "The amount that the call needs to reserve." },
            leftNanoDollars: { type: "integer", description: "The amount available, of the balance or the budget." },
            heldNanoDollars: {
              type: "integer",
              description: "The amount reserved by running calls. It is returned, less their cost.",
            },
            resetsAt: { type: ["string", "null"], description: "When the budget resets. Null: not by itself." },
          },
        },
        missingSecrets: {
          type: "array",
          description: "For `missing_secrets`: each secret to set.",
          items: {
            type: "object",
            required: ["name", "connectorSlug", "stale"],
            properties: {
              name: { type: "string" },
              connectorSlug: {
                type: ["string", "null"],
                description: "The connector that needs it. Null: the agent's guest or config.",
              },
              stale: {
                type: "boolean",
                description: "The secret was set, but the agent's node cannot decrypt it. Set it again.",
              },
            },
          },
        },
      },
    },
  },
};

/** The component `RequestId`, a header of every response. */
export const REQUEST_ID_HEADER: Json = {
  description: "Identifies this request in the server's log.",
  schema: { type: "string", examples: ["req_01kc3b6q2v8r5x0m7n4t9w1yza"] },
};

export const ANSWER_HEADERS: Json = { "x-request-id": { $ref: "#/components/headers/RequestId" } };

interface ErrorTelling {
  /** Statuses that differ from the default of a code. */
  readonly status?: ((code: ErrorCode) => number) | undefined;
  readonly headers?: Json;
}

/** @returns per status: its codes, their meanings, and an example of each. */
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
  description: "The body of error responses of the OAuth endpoints, as in RFC 6749 §5.2.",
  required: ["error"],
  properties: {
    error: {
      type: "string",
      description: "`invalid_grant`, `authorization_pending` and others, as in the OAuth standards.",
    },
    error_description: { type: "string", description: "For the developer of the client." },
  },
};

/** By status, for all OAuth endpoints. */
export const OAUTH_ERROR_RESPONSES: Json = {
  "400": oauthResponse("The request or its grant was rejected. `error` gives the reason.", "invalid_grant"),
  "429": oauthResponse("Too many calls from this address. Retry after `retry-after`.", "temporarily_unavailable"),
  "500": oauthResponse("Internal error. Find the request ID in the server's log.", "server_error"),
  "503": oauthResponse("Temporarily unavailable. Nothing was rejected; retry.", "temporarily_unavailable"),
};

function oauthResponse(description: string, error: string): Json {
  const value = { error, error_description: description };
  return {
    description,
    headers: ANSWER_HEADERS,
    content: { "application/json": { schema: { $ref: "#/components/schemas/OAuthError" }, example: value } },
  };
}
