import { expect, test } from "vitest";
import { type BillableCall, Hold, type HoldBook } from "./hold.ts";

const PRICE = 1_000_000;

function streamOf(outputLimit: number): { readonly hold: Hold; readonly steps: number[] } {
  const steps: number[] = [];
  const call: BillableCall = {
    callId: "req_1",
    projectId: "prj_1",
    spenderId: null,
    budget: null,
    prices: { input: PRICE, output: PRICE, perRequest: 0 },
    inputTokens: 10,
    inputLimit: 10,
    outputLimit,
    unseenTokens: 0,
    streamed: true,
  };
  const book: HoldBook = {
    now: () => 0,
    opened: (_call, held) => steps.push(held),
    extended: (_call, { held }) => steps.push(held),
    settled: () => undefined,
  };
  return { hold: new Hold(call, { account: null, spender: null }, book), steps };
}

test("a stream whose estimate exceeds its limit holds in steps, not for each token", () => {
  const { hold, steps } = streamOf(50);
  for (let tokens = 1; tokens <= 250; tokens++) expect(hold.cover(tokens)).toBeNull();
  expect(steps).toEqual([60, 125, 190, 255, 320]);
});

test("a stream never holds more than its limit while its estimate is within it", () => {
  const { hold, steps } = streamOf(1000);
  for (let tokens = 1; tokens <= 1000; tokens++) expect(hold.cover(tokens)).toBeNull();
  expect(steps.at(-1)).toBe(1010);
  expect(steps.length).toBeLessThanOrEqual(4);
});
