import { expect, test } from "vitest";
import { reasonOf } from "./log.ts";

test.each([
  [new Error("outer", { cause: new Error("inner", { cause: "why" }) }), "outer: inner: why"],
  [
    new Error("refused", { cause: new Error("(HTTP code 500) server error - refused ") }),
    "(HTTP code 500) server error - refused",
  ],
  ["plain", "plain"],
])("a reason names every cause, and says nothing twice: %s", (error, reason) => {
  expect(reasonOf(error)).toBe(reason);
});
