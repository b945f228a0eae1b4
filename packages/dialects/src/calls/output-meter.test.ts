import { expect, test } from "vitest";
import { OutputMeter } from "./output-meter.ts";

function metered(
  dialect: "chat" | "responses",
  ...deltas: readonly string[]
): { tokens: number; firstTokenAt: number } {
  let now = 0;
  const meter = new OutputMeter(dialect, () => now);
  for (const delta of deltas) {
    now++;
    meter.push(Buffer.from(`data: {"choices":[{"index":0,"delta":${delta}}]}\n\n`));
  }
  return { tokens: meter.tokens, firstTokenAt: meter.firstTokenAt ?? 0 };
}

test("a role in each delta does not count as text", () => {
  const plain = Array<string>(40).fill('{"content":"a"}');
  const withRole = Array<string>(40).fill('{"role":"assistant","content":"a"}');
  expect(metered("chat", ...withRole)).toEqual(metered("chat", ...plain));
  expect(metered("chat", ...plain).tokens).toBe(40);
});

test("deltas without text do not count, before or after the first token", () => {
  const empty = [
    '{"role":"assistant"}',
    '{"role":"assistant","content":""}',
    '{"content":""}',
    '{"content":null}',
    "{}",
  ];
  expect(metered("chat", ...empty)).toEqual({ tokens: 0, firstTokenAt: 0 });
  expect(metered("chat", ...empty, '{"content":"abcd"}', ...empty)).toEqual({ tokens: 1, firstTokenAt: 6 });
});

test.each([
  '{"content":"12345678"}',
  '{"reasoning_content":"12345678"}',
  '{"content":"","reasoning_content":"12345678"}',
  '{"tool_calls":[{"index":0,"function":{"arguments":"12345678"}}]}',
])("eight bytes of text count as two tokens: %s", (delta) => {
  expect(metered("chat", delta)).toEqual({ tokens: 2, firstTokenAt: 1 });
});

test("in the responses dialect the delta itself is the text", () => {
  expect(metered("responses", '"12345678"', '""')).toEqual({ tokens: 2, firstTokenAt: 1 });
});
