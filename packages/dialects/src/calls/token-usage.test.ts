import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readUsage } from "./token-usage.ts";

describe("the usage that an upstream reports", () => {
  test("is read from chat completions, with separate cached and reasoning tokens", () => {
    const usage = {
      prompt_tokens: 1200,
      completion_tokens: 300,
      total_tokens: 1500,
      prompt_tokens_details: { cached_tokens: 1024, audio_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: 200 },
    };
    const read = { inputTokens: 1200, cachedInputTokens: 1024, outputTokens: 300, reasoningTokens: 200 };
    expect(readUsage("chat", usage)).toEqual(read);
    expect(readUsage("responses", usage)).toMatchObject({ outputTokens: 1500 });
  });

  test("is read from responses, with separate cached and reasoning tokens", () => {
    const usage = {
      input_tokens: 10,
      input_tokens_details: { cached_tokens: 4 },
      output_tokens: 7,
      output_tokens_details: { reasoning_tokens: 3 },
      total_tokens: 17,
    };
    const read = { inputTokens: 10, cachedInputTokens: 4, outputTokens: 7, reasoningTokens: 3 };
    expect(readUsage("responses", usage)).toEqual(read);
  });

  test("counts reasoning that an upstream includes only in the total", () => {
    const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 115 };
    expect(readUsage("chat", usage)?.outputTokens).toBe(105);
  });

  test.each([null, undefined, {}, "12", [], { prompt_tokens: null }, { prompt_tokens: -1, completion_tokens: 0.5 }])(
    "is missing in %j",
    (usage) => {
      expect(readUsage("chat", usage)).toBeNull();
      expect(readUsage("responses", usage)).toBeNull();
    },
  );

  test("is integral, non-negative and consistent, whatever an upstream sends", () => {
    const field = fc.constantFrom("prompt_tokens", "completion_tokens", "total_tokens");
    const details = fc.constantFrom("prompt_tokens_details", "completion_tokens_details");
    const inner = fc.dictionary(fc.constantFrom("cached_tokens", "reasoning_tokens"), fc.anything());
    const usage = fc
      .tuple(fc.dictionary(field, fc.oneof(fc.nat(), fc.anything())), fc.dictionary(details, inner))
      .map(([counts, more]) => ({ ...counts, ...more }));
    fc.assert(
      fc.property(usage, (told) => {
        const read = readUsage("chat", told);
        if (read === null) return;
        for (const value of Object.values(read)) expect(Number.isSafeInteger(value) && value >= 0).toBe(true);
        expect(read.cachedInputTokens).toBeLessThanOrEqual(read.inputTokens);
        expect(read.reasoningTokens).toBeLessThanOrEqual(read.outputTokens);
      }),
    );
  });
});
