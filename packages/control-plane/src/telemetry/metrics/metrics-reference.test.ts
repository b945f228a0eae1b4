import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { metricsReference } from "./metrics-reference.ts";

test("docs/metrics.md matches the code (regenerate it with `node --conditions=fairlead-source scripts/generate-docs.ts`)", () => {
  const page = new URL("../../../../../docs/metrics.md", import.meta.url);
  expect(readFileSync(page, "utf8")).toBe(metricsReference());
});
