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
  test("formats paths like code", () => {
    expect(fieldPath([])).toBe("");
    expect(fieldPath(["messages", 0, "role"])).toBe("messages[0].role");
    expect(fieldPath([0, 1])).toBe("[0][1]");
  });

  test("reports the error of the union branch that matches furthest", () => {
    const schema = z.object({
      config: z.union([z.object({ a: z.object({ b: z.string() }) }), z.object({ c: z.string() })]),
    });
    expect(refusal(schema, { config: { a: { b: 1 } } }).param).toBe("config.a.b");
  });

  test("lists every error with its field, and a misspelled name before the missing one", () => {
    const schema = z.strictObject({ name: z.string(), port: z.number(), tags: z.array(z.string()) });
    const result = parseInput(schema, { nmae: "x", prot: 1, port: "1", tags: ["a", 2] });
    expect(result.success).toBe(false);
    const { message, param, errors } = validationError(result.error ?? new z.ZodError([]), "body");
    expect(errors).toEqual([
      { param: "nmae", message: "Unknown field `nmae`" },
      { param: "prot", message: "Unknown field `prot`" },
      { param: "name", message: "`name`: is missing" },
      { param: "port", message: "`port`: invalid input: expected number, received string" },
      { param: "tags[1]", message: "`tags[1]`: invalid input: expected string, received number" },
    ]);
    expect(param).toBe("nmae");
    expect(message).toMatch(/^Unknown field `nmae`; unknown field `prot`; `name`: is missing; .*`tags\[1\]`: .*\.$/);
  });

  test("keeps a schema's own messages", () => {
    const schema = z.object({ port: z.number().max(10, "must be at most 10") });
    expect(refusal(schema, { port: 11 })).toEqual({ param: "port", message: "`port`: must be at most 10." });
  });

  test("reports missing values as missing", () => {
    expect(refusal(z.object({ a: z.array(z.string()) }), {})).toEqual({ param: "a", message: "`a`: is missing." });
    expect(refusal(z.object({}), null)).toEqual({ param: "body", message: "`body`: is missing." });
  });

  test("limits how much of the input is repeated", () => {
    const long = "x".repeat(500_000);
    const keys = Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`${n}`, n]));
    const schema = z.strictObject({ a: z.record(z.string(), z.number()).optional(), b: z.enum(["c"]).optional() });
    for (const input of [{ [long]: 1 }, { a: { [long]: "x" } }, keys, { a: keys, b: long }]) {
      const { param, message } = refusal(schema, input);
      expect((param ?? "").length).toBeLessThan(300);
      expect(message.length).toBeLessThan(1000);
      const { error } = parseInput(schema, input);
      const all = JSON.stringify(error && validationError(error, "body").errors);
      expect(all.length).toBeLessThan(50_000);
    }
  });
});
