import { expect, test } from "vitest";
import { reasonOf } from "./log.ts";

test.each([
  [new Error("outer", { cause: new Error("inner", { cause: "why" }) }), "outer: inner: why"],
  [
    new Error("refused", { cause: new Error("(HTTP code 500) server error - refused ") }),
    "(HTTP code 500) server error - refused",
  ],
  [new Error("cannot be asked: no such file", { cause: new Error("no such file") }), "cannot be asked: no such file"],
  ["plain", "plain"],
])("a reason names every cause, and repeats nothing: %s", (error, reason) => {
  expect(reasonOf(error)).toBe(reason);
});
