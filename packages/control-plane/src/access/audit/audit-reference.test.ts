import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { auditReference } from "./audit-reference.ts";

test("docs/audit.md matches the list of actions; run `node --conditions=fairlead-source scripts/generate-docs.ts`", () => {
  const page = new URL("../../../../../docs/audit.md", import.meta.url);
  expect(readFileSync(page, "utf8")).toBe(auditReference());
});
