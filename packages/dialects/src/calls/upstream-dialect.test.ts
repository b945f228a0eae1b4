import { describe, expect, test } from "vitest";
import { dialectAt, isStatefulAt } from "./upstream-dialect.ts";

describe("the dialect in which an upstream is called", () => {
  test("is the caller's if the upstream speaks it", () => {
    expect(dialectAt(["chat", "responses"], "responses")).toBe("responses");
    expect(dialectAt(["responses", "chat"], "chat")).toBe("chat");
  });

  test("is otherwise one that the call can be converted to", () => {
    expect(dialectAt(["chat"], "responses")).toBe("chat");
    expect(dialectAt(["responses"], "chat")).toBe("responses");
  });

  test("is none if the upstream speaks no such dialect, and then nothing is stored there", () => {
    expect(dialectAt([], "chat")).toBeNull();
    expect(isStatefulAt([], "responses")).toBe(false);
  });

  test("decides whether the upstream may store responses", () => {
    expect(isStatefulAt(["chat"], "responses")).toBe(false);
    expect(isStatefulAt(["responses"], "chat")).toBe(true);
  });
});
