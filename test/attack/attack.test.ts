import * as fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { EVERY_DRILL } from "../drills/stage/every-drill.ts";
import { TEST_SEED } from "../support/seed.ts";
import type { Attack } from "./attack.ts";
import { ATTACKS } from "./attacks.ts";
import { Campaign } from "./campaign.ts";

/**
 * Hostile parties against a server as it is shipped, while an honest client uses it; docs/attack-suite.md says how a run is read,
 * repeated and made longer.
 */

const { env } = process;
const PATH = env["FAIRLEAD_ATTACK_PATH"];
const ONLY = env["FAIRLEAD_ATTACK_ONLY"]?.split(",");
const MINUTES = Number(env["FAIRLEAD_ATTACK_MINUTES"] ?? (EVERY_DRILL ? 60 : 0));

const chosen = ATTACKS.filter(({ name }) => ONLY?.includes(name) ?? true);
/** For each attacker's random rounds; in the short form there are as many as here, however long they take. */
const RANDOM_MS = (MINUTES * 60_000) / chosen.length;
const SHORT_ROUNDS = 1;
/** After a failure. */
const SHRINKING_MS = MINUTES === 0 ? 60_000 : 600_000;
/** No round is shorter. */
const ROUND_MS = 2000;
/** A round that finds a server which says nothing any more is the longest. */
const LONGEST_ROUND_MS = 180_000;
const MOST_MOVES = 4;

describe(`hostile parties (seed ${TEST_SEED})`, () => {
  const campaign = new Campaign(env["FAIRLEAD_ATTACK_REPORT"]);
  afterAll(async () => void (await campaign.end()));

  describe.each(chosen.map((attack) => [attack.name, attack] as const))("%s", (_name, attack) => {
    test.skipIf(PATH !== undefined).each(Object.entries(attack.known))(
      "%s",
      { timeout: LONGEST_ROUND_MS },
      async (_what, moves) => {
        expect(await campaign.round(attack.name, moves)).toEqual([]);
      },
    );

    test("does no harm, whatever it does", { timeout: RANDOM_MS + SHRINKING_MS + 2 * LONGEST_ROUND_MS }, async () => {
      await fc.assert(propertyOf(attack, campaign), {
        seed: TEST_SEED,
        ...(PATH === undefined ? {} : { path: PATH }),
        numRuns: SHORT_ROUNDS + Math.ceil(RANDOM_MS / ROUND_MS),
      });
    });
  });

  test("leave the server able to stop in time", { timeout: LONGEST_ROUND_MS }, async () => {
    expect(await campaign.end()).toEqual([]);
  });
});

/** Once the time is over, whatever is generated passes: for random rounds, and for shrinking one that failed. */
function propertyOf(attack: Attack<object>, campaign: Campaign): fc.IAsyncProperty<[object[]]> {
  let rounds = 0;
  let deadline = performance.now() + RANDOM_MS;
  let isFailing = false;
  return fc.asyncProperty(fc.array(attack.move, { minLength: 1, maxLength: MOST_MOVES }), async (moves) => {
    if (performance.now() > deadline && (isFailing || rounds >= SHORT_ROUNDS)) return;
    rounds += 1;
    const findings = await campaign.round(attack.name, moves);
    if (findings.length === 0) return;
    if (!isFailing) deadline = performance.now() + SHRINKING_MS;
    isFailing = true;
    throw new Error(findings.join("\n"));
  });
}
