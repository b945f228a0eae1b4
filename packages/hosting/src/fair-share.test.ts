import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { FairShare, type Holding } from "./fair-share.ts";

const holdings = (count: number): Holding[] => Array.from({ length: count }, () => ({ amount: 0 }));

/** Everyone claims one after the other until nobody gets more. */
function fill(shares: FairShare, parties: readonly Holding[]): void {
  while (parties.map((party) => shares.claim(1, party)).includes("granted"));
}

describe("a fair share", () => {
  test("of a single party is its fraction of the whole", () => {
    const [party] = holdings(1) as [Holding];
    const shares = new FairShare(1000, 0.75);
    fill(shares, [party]);
    expect(party.amount).toBeGreaterThanOrEqual(749);
    expect(party.amount).toBeLessThanOrEqual(751);
    expect(shares.claim(1, party)).toBe("beyond_share");
  });

  test.each([2, 3, 10])("of %d parties is equal, and leaves something for another party", (count) => {
    const parties = holdings(count);
    const shares = new FairShare(1000, 0.75);
    fill(shares, parties);
    const amounts = parties.map(({ amount }) => amount);
    expect(Math.max(...amounts) - Math.min(...amounts)).toBeLessThanOrEqual(1);
    const [late] = holdings(1) as [Holding];
    expect(shares.claim(1, late)).toBe("granted");
  });

  test("grows again when others release theirs", () => {
    const [one, other] = holdings(2) as [Holding, Holding];
    const shares = new FairShare(1000, 0.75);
    fill(shares, [one, other]);
    expect(shares.claim(100, one)).toBe("beyond_share");
    shares.giveBack(other.amount, other);
    expect(shares.claim(100, one)).toBe("granted");
  });

  test("of 1 does not distinguish between parties", () => {
    const [party] = holdings(1) as [Holding];
    const shares = new FairShare(10, 1);
    expect(shares.claim(10, party)).toBe("granted");
    expect(shares.claim(1, party)).toBe("full");
  });

  test("never exceeds what is available, and no amount is lost", () => {
    const step = fc.record({ party: fc.nat(3), amount: fc.integer({ min: 0, max: 400 }), gives: fc.boolean() });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const parties = holdings(4);
        const shares = new FairShare(1000, 0.75);
        for (const { party, amount, gives } of steps) {
          const holding = parties[party] ?? { amount: 0 };
          if (gives) shares.giveBack(Math.min(amount, holding.amount), holding);
          else shares.claim(amount, holding);
          expect(shares.used).toBe(parties.reduce((sum, each) => sum + each.amount, 0));
          expect(shares.used).toBeLessThanOrEqual(1000);
        }
      }),
    );
  });
});
