import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { reconcileReference } from "./reconcile-reference.ts";

test("docs/reconcile.md matches the code (regenerate it with `node --conditions=fairlead-source scripts/generate-docs.ts`)", () => {
  const page = new URL("../../../../docs/reconcile.md", import.meta.url);
  expect(readFileSync(page, "utf8")).toBe(reconcileReference());
});
