import fc from "fast-check";
import { expect, test } from "vitest";
import { Distribution } from "./distribution.ts";

test("counts each value under every bound that it does not exceed", () => {
  const values = fc.array(fc.double({ noNaN: true, min: 0, max: 10 }));
  fc.assert(
    fc.property(values, (observed) => {
      const distribution = new Distribution([1, 2, 5]);
      for (const value of observed) distribution.observe(value);
      expect(distribution.count).toBe(observed.length);
      expect(distribution.sum).toBeCloseTo(observed.reduce((sum, value) => sum + value, 0));
      expect(distribution.cumulative()).toEqual([1, 2, 5].map((bound) => observed.filter((v) => v <= bound).length));
    }),
  );
});
