import { expect, test } from "vitest";
import { expectNeverMoreLenient } from "./http1-differential.fixture.ts";

const MESSAGES = 3000;

test("a response is never accepted where Node's parser refuses it, and reads the same where both accept it", async () => {
  const accepted = await expectNeverMoreLenient({ seed: 1, messages: MESSAGES });
  expect(accepted).toBeGreaterThan(MESSAGES / 10);
});
