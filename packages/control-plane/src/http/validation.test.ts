import { describe, expect, test } from "vitest";
import { z } from "zod";
import { fieldPath, parseInput, validationError } from "./validation.ts";

function refusal(schema: z.ZodType, input: unknown): { param: string | null; message: string } {
  const result = parseInput(schema, input);
  if (result.success) throw new Error("was accepted");
  const { param, message } = validationError(result.error, "body");
  return { param, message };
}

describe("validation", () => {
  test("paths read like code", () => {
    expect(fieldPath([])).toBe("");
    expect(fieldPath(["messages", 0, "role"])).toBe("messages[0].role");
    expect(fieldPath([0, 1])).toBe("[0][1]");
  });

  test("of a union, the branch that got furthest says what is wrong", () => {
    const schema = z.object({
      config: z.union([z.object({ a: z.object({ b: z.string() }) }), z.object({ c: z.string() })]),
    });
    expect(refusal(schema, { config: { a: { b: 1 } } }).param).toBe("config.a.b");
  });

  test("a schema's own words are kept", () => {
    const schema = z.object({ port: z.number().max(10, "must be at most 10") });
    expect(refusal(schema, { port: 11 })).toEqual({ param: "port", message: "`port`: must be at most 10." });
  });

  test("what is missing is called missing", () => {
    expect(refusal(z.object({ a: z.array(z.string()) }), {})).toEqual({ param: "a", message: "`a`: is missing." });
    expect(refusal(z.object({}), null)).toEqual({ param: "body", message: "`body`: is missing." });
  });
});
