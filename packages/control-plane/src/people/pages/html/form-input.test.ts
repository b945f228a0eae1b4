import { describe, expect, test } from "vitest";
import { z } from "zod";
import { localPath } from "../../sign-in/sign-in.ts";
import { emailSchema } from "../../users/user.ts";
import { parseForm, readForm } from "./form-input.ts";

const schema = z.strictObject({ email: emailSchema, name: z.string().min(1, "must not be empty") });
const ownPath = (text: string): string | null => localPath(text, "https://own.example");
const misused = expect.objectContaining({ code: "invalid_request" });

describe("a posted form", () => {
  test("is read as browsers encode it", () => {
    expect(parseForm("a=1+2&b=%C3%A4%26%3D&c=")).toEqual({ a: "1 2", b: "ä&=", c: "" });
  });

  test("cannot repeat a field or be very long", () => {
    for (const text of ["a=1&a=2", `a=${"x".repeat(8193)}`]) expect(() => parseForm(text)).toThrow(misused);
  });

  test("cannot reach object prototypes", () => {
    const fields = parseForm("__proto__=x&constructor=y");
    expect(Object.getPrototypeOf(fields)).toBe(Object.prototype);
    expect(Object.keys(fields)).toEqual(["__proto__", "constructor"]);
  });

  test("returns values, or a message for each invalid field", () => {
    expect(readForm(schema, { email: " Ann@Example.org", name: "Ann" }).values).toEqual({
      email: "ann@example.org",
      name: "Ann",
    });
    expect(readForm(schema, { email: "ann", name: "" }).errors).toEqual({
      email: "Must be an email address.",
      name: "Must not be empty.",
    });
  });

  test("is rejected with an extra or a missing field", () => {
    expect(() => readForm(schema, { email: "ann@example.org", name: "Ann", admin: "1" })).toThrow(misused);
    expect(() => readForm(schema, { email: "ann@example.org" })).toThrow(misused);
  });
});

describe("the destination after sign-in", () => {
  test.each(["/", "/device?user_code=ABCD-EFGH", "/v1/oauth/authorize?a=b&c=%2F"])("can be the path %s", (path) => {
    expect(ownPath(path)).toBe(path);
  });

  test.each([
    "",
    "account",
    "//evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "/\t/evil.example",
    "/\n/evil.example",
    "https://evil.example/",
    "javascript:alert(1)",
    "http://[",
    "///evil.example",
  ])("cannot be %j", (text) => {
    expect(ownPath(text)).toBeNull();
  });

  test("is never on another host, however the path is written", () => {
    for (const text of ["/..//evil.example", "/./\\evil.example", "/%2F/evil.example", "/@evil.example"]) {
      const path = ownPath(text);
      if (path !== null) expect(new URL(path, "https://own.example").host).toBe("own.example");
    }
  });
});
