import { expect, test } from "vitest";
import { checkLabels, matcherOf } from "./label-selector.ts";

const LABELS = { env: "prod", "example.com/my": "x", empty: "" };

test.each([
  ["env", true],
  ["!env", false],
  ["env=prod", true],
  ["env==prod", true],
  ["env!=prod", false],
  ["missing!=prod", true],
  ["empty=", true],
  ["env in (dev,prod)", true],
  ["env notin (dev, prod)", false],
  ["missing notin (dev)", true],
  ["example.com/my=x,env in (prod,dev),!missing", true],
  ["env=prod,missing", false],
])("the selector %s matches as expected", (selector, matches) => {
  expect(matcherOf(selector)(LABELS)).toBe(matches);
});

test.each(["", "a b", "=x", "env,,x"])("%j is not a valid selector", (selector) => {
  expect(() => matcherOf(selector)).toThrow("is no label");
});

test.each<Record<string, string>>([{ "hetzner.cloud/x": "" }, { "": "x" }, { a: "ü" }, { a: "x".repeat(64) }])(
  "%j are not valid labels",
  (labels) => {
    expect(() => checkLabels(labels)).toThrow("is invalid");
  },
);
