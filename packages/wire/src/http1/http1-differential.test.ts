import { expect, test } from "vitest";
import { expectNeverMoreLenient } from "./http1-differential.fixture.ts";

const MESSAGES = 3000;

test("a response that Node's parser rejects is never accepted, and one that both accept reads the same", async () => {
  const accepted = await expectNeverMoreLenient({ seed: 1, messages: MESSAGES });
  expect(accepted).toBeGreaterThan(MESSAGES / 10);
});
