import { isAllowedModel, NO_LIMITS } from "@fairlead/protocol/key-limits";
import { MAX_NANO_DOLLARS } from "@fairlead/protocol/values/money";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { keyLimitsChangeSchema, limitsFromText, mergeLimits } from "./key-limits.ts";

describe("a list of allowed models", () => {
  test.each([
    [null, "any/model", true],
    [["a/b"], "a/b", true],
    [["a/b"], "a/B", false],
    [["a/b"], "a/b/c", false],
    [["a/*"], "a/b", true],
    [["a/*"], "a/org/b:tag", true],
    [["a/*"], "a/", false],
    [["a/*"], "a", false],
    [["a/*"], "ab/c", false],
    [["a/*"], "/a/b", false],
    [["fast"], "fast", true],
    [["x/y", "a/*"], "a/b", true],
    [["a/b"], "", false],
    [["a/*"], "a/*", true],
    [["__proto__"], "constructor", false],
  ])("%j allows %j: %j", (list, model, allowed) => {
    expect(isAllowedModel(list, model)).toBe(allowed);
  });
});

describe("limits in a request", () => {
  test.each([
    {},
    { modelAllowList: ["a/b", "a/*", "alias", "node-1/org/name:q4", "ä/ö"], requestsPerMinute: 1 },
    { modelAllowList: null, requestsPerMinute: null, tokensPerMinute: null, parallelCalls: null },
    { budget: { total: 0, daily: MAX_NANO_DOLLARS, monthly: null } },
  ])("%j is accepted", (limits) => {
    expect(keyLimitsChangeSchema.parse(limits)).toEqual(limits);
  });

  test.each([
    [{ requestPerMinute: 1 }, ""],
    [{ budget: { weekly: 1 } }, "budget"],
    [{ requestsPerMinute: 0 }, "requestsPerMinute"],
    [{ requestsPerMinute: 1.5 }, "requestsPerMinute"],
    [{ parallelCalls: "4" }, "parallelCalls"],
    [{ tokensPerMinute: 1e10 }, "tokensPerMinute"],
    [{ budget: { total: -1 } }, "budget.total"],
    [{ budget: { total: "25" } }, "budget.total"],
    [{ budget: { total: MAX_NANO_DOLLARS + 1 } }, "budget.total"],
    // As JSON.parse reads it: what it would have rounded must not become a budget.
    [JSON.parse('{"budget":{"total":9007199254740993}}'), "budget.total"],
    [{ budget: null }, "budget"],
    [{ modelAllowList: [] }, "modelAllowList"],
    [{ modelAllowList: [""] }, "modelAllowList.0"],
    [{ modelAllowList: ["*"] }, "modelAllowList.0"],
    [{ modelAllowList: ["a*"] }, "modelAllowList.0"],
    [{ modelAllowList: ["a/*/b"] }, "modelAllowList.0"],
    [{ modelAllowList: ["/*"] }, "modelAllowList.0"],
    [{ modelAllowList: ["a/b/*"] }, "modelAllowList.0"],
    [{ modelAllowList: ["a\nb"] }, "modelAllowList.0"],
    [{ modelAllowList: ["x".repeat(257)] }, "modelAllowList.0"],
    [{ modelAllowList: Array.from({ length: 201 }, (_, n) => `m/${n}`) }, "modelAllowList"],
  ])("%j is rejected, naming the field", (limits, path) => {
    const { error } = keyLimitsChangeSchema.safeParse(limits);
    expect(new Set(error?.issues.map((issue) => issue.path.join(".")))).toEqual(new Set([path]));
  });
});

describe("a change of limits", () => {
  const some = mergeLimits(NO_LIMITS, { modelAllowList: ["a/b"], parallelCalls: 2, budget: { daily: 5, total: 9 } });

  test("keeps omitted fields and removes null ones, each field of the budget separately", () => {
    expect(mergeLimits(some, {})).toEqual(some);
    expect(mergeLimits(some, { parallelCalls: null, requestsPerMinute: 3, budget: { daily: null } })).toEqual({
      modelAllowList: ["a/b"],
      requestsPerMinute: 3,
      tokensPerMinute: null,
      parallelCalls: null,
      budget: { total: 9, daily: null, monthly: null },
    });
    expect(mergeLimits(some, { modelAllowList: null }).modelAllowList).toBeNull();
  });

  test("replaces the whole list of models, and keeps each name once", () => {
    expect(mergeLimits(some, { modelAllowList: ["c/d", "c/*", "c/d"] }).modelAllowList).toEqual(["c/d", "c/*"]);
  });
});

describe("stored limits", () => {
  test("are read back unchanged", () => {
    const limit = fc.option(fc.integer({ min: 1, max: 1e9 }));
    const amount = fc.option(fc.integer({ min: 0, max: MAX_NANO_DOLLARS }));
    const limits = fc.record({
      modelAllowList: fc.option(fc.array(fc.string(), { minLength: 1, maxLength: 4 })),
      requestsPerMinute: limit,
      tokensPerMinute: limit,
      parallelCalls: limit,
      budget: fc.record({ total: amount, daily: amount, monthly: amount }),
    });
    const property = fc.property(limits, (value) => {
      expect(limitsFromText(JSON.stringify(value))).toEqual(value);
    });
    fc.assert(property);
  });

  test("are unlimited where a row of an older version has no field", () => {
    expect(limitsFromText("{}")).toEqual(NO_LIMITS);
    expect(limitsFromText('{"parallelCalls":2,"budget":{"daily":1}}')).toEqual({
      ...NO_LIMITS,
      parallelCalls: 2,
      budget: { ...NO_LIMITS.budget, daily: 1 },
    });
  });
});
