import type { Dialect } from "@fairlead/dialects/calls/dialect";
import { DomainError } from "@fairlead/protocol/errors";
import { describe, expect, test } from "vitest";
import { outcomeOf, readUpstreamRefusal, refusalText } from "./upstream-refusal.ts";

const ERROR = { message: "Too long", type: "invalid_request_error", code: "context_length_exceeded", param: null };

const told = (body: unknown, status = 400, dialect: Dialect = "chat"): Record<string, unknown> =>
  (
    JSON.parse(refusalText(body, { status, retryAfterSeconds: undefined }, { dialect, requestId: "req_1" })) as {
      error: object;
    }
  ).error as Record<string, unknown>;

const refused = (body: unknown, status: number, retryAfterSeconds?: number): DomainError => {
  try {
    refusalText(body, { status, retryAfterSeconds }, { dialect: "chat", requestId: "req_1" });
  } catch (error) {
    if (error instanceof DomainError) return error;
    throw error;
  }
  throw new Error("it was told as the caller's");
};

describe("an upstream's rejection of an invalid call", () => {
  test("keeps the upstream's message and code, in the host's error format", () => {
    expect(told({ error: { ...ERROR, n_ctx: 4096 } })).toEqual({ ...ERROR, source: "provider", requestId: "req_1" });
  });

  test("has the code that clients know if the context is too long and the engine uses another", () => {
    const error = { code: 400, message: "too long", type: "exceed_context_size_error", n_ctx: 512 };
    expect(told({ error })).toMatchObject({ code: "context_length_exceeded", type: "invalid_request_error" });
  });

  test.each([
    [400, "invalid_request", "invalid_request_error"],
    [413, "request_too_large", "invalid_request_error"],
    [415, "unsupported_media_type", "invalid_request_error"],
    [422, "invalid_request", "invalid_request_error"],
  ])("has the host's code for %i if the upstream sends none", (status, code, type) => {
    for (const word of [null, 400, "400", "", undefined]) {
      expect(told({ error: { message: "no", type: "BadRequestError", code: word } }, status)).toMatchObject({
        code,
        type,
        message: "no",
      });
    }
  });

  test.each([
    [{ message: "The model `x` does not exist.", code: 404, type: "NotFoundError" }, "model_not_found", "model"],
    [{ message: "No.", code: "model_not_found" }, "model_not_found", "model"],
    [{ message: "No.", param: "model" }, "model_not_found", "model"],
    [{ message: "Item rs_1 not found.", type: "invalid_request_error", param: "input" }, "not_found", "messages"],
  ])("with 404 and %j is %s", (error, code, param) => {
    expect(told({ error }, 404)).toMatchObject({ code, param, type: "not_found_error", source: "provider" });
  });

  test.each<[Dialect, string, string]>([
    ["responses", "messages[1].content", "input"],
    ["responses", "max_tokens", "max_output_tokens"],
    ["responses", "max_completion_tokens", "max_output_tokens"],
    ["responses", "response_format.json_schema", "text.format"],
    ["responses", "reasoning_effort", "reasoning.effort"],
    ["responses", "tools[0].function.name", "tools[0].function.name"],
    ["responses", "constructor", "constructor"],
    ["chat", "input[1]", "messages"],
    ["chat", "max_output_tokens", "max_completion_tokens"],
    ["chat", "text.format.schema", "response_format"],
    ["chat", "reasoning.effort", "reasoning_effort"],
  ])("names the field for a caller of %s: %s becomes %s", (dialect, param, expected) => {
    expect(told({ error: { ...ERROR, param } }, 400, dialect)["param"]).toBe(expected);
  });

  test.each([
    ["a page that is not JSON", "<h1>Bad Request</h1>", "<h1>Bad Request</h1>"],
    ["FastAPI's form", { detail: "Not here" }, "Not here"],
    ["a string in `error`", { error: "model not found" }, "model not found"],
    ["an older engine's form", { object: "error", message: "boom", code: 400 }, "boom"],
    ["an empty body", "", "without a message"],
    ["null", null, "without a message"],
    ["a message that is not a string", { error: { message: { a: 1 } } }, "without a message"],
  ])("is read from %s", (_what, body, words) => {
    expect(told(body)["message"]).toContain(words);
  });

  test("is truncated if it is long", () => {
    expect(told({ error: { message: "x".repeat(100_000) } })["message"]).toHaveLength(4000);
  });
});

describe("a failure that the caller did not cause", () => {
  test.each([500, 502, 503, 408, 409, 410, 451])(
    "is `upstream_failed` for %i, with the upstream's message",
    (status) => {
      const error = refused({ error: { message: "boom", code: null, type: "server_error" } }, status, 3);
      expect(error).toMatchObject({
        code: "upstream_failed",
        message: "boom",
        source: "provider",
        retryAfterSeconds: 3,
      });
      expect(outcomeOf(error)).toBe("upstream_failed");
    },
  );

  test("is not a missing model if the upstream does not know the path", () => {
    expect(refused({ detail: "Not Found" }, 404)).toMatchObject({ code: "upstream_failed" });
    expect(refused({ error: { message: "File Not Found", type: "not_found_error", code: 404 } }, 404)).toMatchObject({
      code: "upstream_failed",
    });
  });

  test("is 429 with a retry time for the upstream's limit, and is not counted as a limit of the host", () => {
    const error = refused({ error: { message: "slow", code: "rate" } }, 429, 1.5);
    expect(error).toMatchObject({ code: "rate_limit_exceeded", source: "provider", retryAfterSeconds: 1.5 });
    expect(outcomeOf(error)).toBe("upstream_failed");
    expect(outcomeOf(new DomainError("rate_limit_exceeded", "Ours."))).toBe("rate_limit_exceeded");
  });

  test.each([
    { code: "invalid_api_key" },
    { type: "authentication_error" },
    { code: 402 },
    { code: "insufficient_quota" },
  ])(
    "does not include the upstream's message if it is about the platform's account (%j), whatever the status",
    (rest) => {
      for (const status of [400, 404, 429, 500]) {
        const error = refused({ error: { message: "Key sk-1 is out of money", ...rest } }, status);
        expect(error.code).toBe("upstream_rejected_credentials");
        expect(error.message).not.toContain("sk-1");
      }
    },
  );
});

test("a rejected call is attributed to the caller even if it can only be reported in the stream", () => {
  const { error } = readUpstreamRefusal({ error: ERROR }, { status: 400, retryAfterSeconds: undefined });
  expect(error).toMatchObject({ code: "invalid_request", message: "Too long", source: "provider" });
  expect(outcomeOf(error)).toBe("rejected");
});
