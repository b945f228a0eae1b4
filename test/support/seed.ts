import { randomInt } from "node:crypto";

const given = process.env["FAIRLEAD_TEST_SEED"];

/**
 * The seed of generated input. It is the same in every run, so that a failure comes from the change that is tested. FAIRLEAD_TEST_SEED sets
 * another one; `random`, the default of `scripts/test --drills`, explores further.
 */
export const TEST_SEED = given === "random" ? randomInt(2 ** 31) : Number(given ?? 20_261_130);
if (!Number.isInteger(TEST_SEED)) throw new Error(`FAIRLEAD_TEST_SEED must be an integer or "random", not "${given}"`);
