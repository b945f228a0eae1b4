import { describe, expect, test } from "vitest";
import { dialectAt, isStatefulAt } from "./upstream-dialect.ts";

describe("the dialect used for an upstream", () => {
  test("is the caller's if the upstream supports it", () => {
    expect(dialectAt(["chat", "responses"], "responses")).toBe("responses");
    expect(dialectAt(["responses", "chat"], "chat")).toBe("chat");
  });

  test("is otherwise one to which the call can be converted", () => {
    expect(dialectAt(["chat"], "responses")).toBe("chat");
    expect(dialectAt(["responses"], "chat")).toBe("responses");
  });

  test("is null if the upstream supports neither, and then the upstream stores nothing", () => {
    expect(dialectAt([], "chat")).toBeNull();
    expect(isStatefulAt([], "responses")).toBe(false);
  });

  test("determines whether the upstream may store responses", () => {
    expect(isStatefulAt(["chat"], "responses")).toBe(false);
    expect(isStatefulAt(["responses"], "chat")).toBe(true);
  });
});
