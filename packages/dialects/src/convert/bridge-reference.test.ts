import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { bridgeReference } from "./bridge-reference.ts";

test("docs/bridge.md matches the code (regenerate it with `node --conditions=fairlead-source scripts/generate-docs.ts`)", () => {
  expect(readFileSync(new URL("../../../../docs/bridge.md", import.meta.url), "utf8")).toBe(bridgeReference());
});
