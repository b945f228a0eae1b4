import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { nodeStatusReference } from "./node-status-reference.ts";

test("docs/node-status.md matches the code (regenerate it with `node --conditions=fairlead-source scripts/generate-docs.ts`)", () => {
  const page = new URL("../../../../../../docs/node-status.md", import.meta.url);
  expect(readFileSync(page, "utf8")).toBe(nodeStatusReference());
});
