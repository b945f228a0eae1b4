import { readFileSync } from "node:fs";
import { ERROR_CODES } from "@fairlead/protocol/errors";
import { expect, test } from "vitest";
import { errorReference } from "./error-reference.ts";

test("docs/errors.md matches the code (regenerate it with `node --conditions=fairlead-source scripts/generate-docs.ts`)", () => {
  expect(readFileSync(new URL("../../../../../docs/errors.md", import.meta.url), "utf8")).toBe(errorReference());
});

test("the reference describes every code", () => {
  for (const code of Object.keys(ERROR_CODES)) expect(errorReference()).toContain(`| \`${code}\` |`);
});
