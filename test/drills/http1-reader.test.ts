import { expect, test } from "vitest";
import { expectNeverMoreLenient } from "../../packages/wire/src/http1/http1-differential.fixture.ts";
import { EVERY_DRILL } from "./stage/every-drill.ts";

const MESSAGES = 10_000;

/** The same as packages/wire/src/http1/http1-differential.test.ts with a million responses. */
if (EVERY_DRILL) {
  test.each(Array.from({ length: 100 }, (_, seed) => seed + 1))(
    "none of 10,000 responses of seed %d is accepted if Node's parser rejects it",
    async (seed) => {
      const accepted = await expectNeverMoreLenient({ seed, messages: MESSAGES });
      expect(accepted).toBeGreaterThan(MESSAGES / 10);
    },
  );
} else {
  test("none of 10,000 responses is accepted if Node's parser rejects it", async () => {
    const accepted = await expectNeverMoreLenient({ seed: 101, messages: MESSAGES });
    expect(accepted).toBeGreaterThan(MESSAGES / 10);
  });
}
