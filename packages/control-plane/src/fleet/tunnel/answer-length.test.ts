import { describe, expect, test } from "vitest";
import { answerLength } from "./answer-length.ts";

describe("the length of a response", () => {
  test.each([
    { method: "GET", status: 200, headers: { "content-length": "12" }, length: 12 },
    { method: "GET", status: 200, headers: { "content-length": "0" }, length: 0 },
    { method: "GET", status: 200, headers: {}, length: null },
    { method: "POST", status: 500, headers: { "content-length": "007" }, length: 7 },
    { method: "HEAD", status: 200, headers: { "content-length": "12" }, length: 0 },
    { method: "HEAD", status: 200, headers: {}, length: 0 },
    { method: "CONNECT", status: 200, headers: { "content-length": "0" }, length: null },
    { method: "CONNECT", status: 403, headers: { "content-length": "9" }, length: 9 },
    { method: "GET", status: 204, headers: {}, length: 0 },
    { method: "GET", status: 304, headers: { "content-length": "12" }, length: 0 },
  ])("to $method with $status and $headers is $length", ({ method, status, headers, length }) => {
    expect(answerLength(method, { status, headers })).toBe(length);
  });

  test.each(["", "-1", "+1", "1.5", "0x1", "1e3", " 1", "1, 1", "NaN", "9".repeat(16)])("cannot be %j", (text) => {
    const head = { status: 200, headers: { "content-length": text } };
    expect(() => answerLength("GET", head)).toThrow("not a number");
    expect(() => answerLength("HEAD", head)).toThrow("not a number");
  });
});
